/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the tokens that may follow. For each way (a set of threads and their stack):
 *
 *     local mask    the tokens that end within the set's rule, and the exits: nodes of the trie
 *                   at which the rule may end or call another. It depends on the set alone.
 *     exits         from each exit the walk continues with the rules on the stack
 *
 * A local mask begins with all tokens or with none, whichever is nearer to the result, and the walk
 * removes or adds subtrees of the trie.
 */
#include <string.h>

#include "plugin/text/constraint_parts.h"

/* ---- bits ------------------------------------------------------------------------- */

static void
set_tokens(const struct xm_token_trie *t, uint32_t from, uint32_t to, uint64_t *words)
{
    for (uint32_t i = from; i < to; i++)
        words[t->tokens[i] / 64] |= (uint64_t)1 << t->tokens[i] % 64;
}

static void
clear_tokens(const struct xm_token_trie *t, uint32_t from, uint32_t to, uint64_t *words)
{
    for (uint32_t i = from; i < to; i++)
        words[t->tokens[i] / 64] &= ~((uint64_t)1 << t->tokens[i] % 64);
}

/* Returns whether all tokens below the node consist of characters that lead back into the set, so
 * that the whole subtree is allowed. */
static bool
takes_all(const struct xm_set *s, const struct xm_trie_node *node)
{
    return s->loops && !node->is_broken && !(node->ascii[0] & ~s->ascii[0]) &&
           !(node->ascii[1] & ~s->ascii[1]) &&
           (!node->has_non_ascii || s->all_non_ascii) && node->chars <= s->room;
}

/* ---- local masks ------------------------------------------------------------------ */

struct local_walk {
    struct xm_constraint *c;
    const struct xm_token_trie *trie;
    struct xm_local_mask *m;
    bool takes_away;
};

static void
add_exit(struct local_walk *w, uint32_t node, uint32_t set)
{
    struct xm_local_mask *m = w->m;
    struct xm_exit *grown =
        xm_grow(m->exits, &m->exits_capacity, m->n_exits + 1, sizeof(*grown));
    if (!grown) {
        xm_constraint_fail(w->c, XM_NO_MEMORY, "the tokens that a grammar allows");
        return;
    }
    m->exits = grown;
    m->exits[m->n_exits++] = (struct xm_exit){node, set};
}

/* Returns whether the set can read the first byte of more than half of all tokens. */
static bool
takes_most(struct xm_constraint *c, const struct xm_token_trie *t, uint32_t set)
{
    size_t n = 0;
    for (uint32_t i = 1; i < t->n_nodes; i = t->nodes[i].end)
        if (xm_set_next(c, set, t->nodes[i].byte) != XM_SET_DEAD)
            n += t->nodes[t->nodes[i].end].tokens - t->nodes[i].tokens;
    return n > t->n_tokens / 2;
}

static void
walk_local(struct local_walk *w, uint32_t set)
{
    struct xm_constraint *c = w->c;
    const struct xm_token_trie *t = w->trie;
    uint32_t path[XM_TRIE_DEEPEST + 1] = {set};
    uint64_t *words = w->m->words;
    w->takes_away = takes_most(c, t, set);
    if (w->takes_away)
        memcpy(words, t->all, t->n_words * sizeof(*words));
    else
        memset(words, 0, t->n_words * sizeof(*words));
    for (uint32_t i = 1; i < t->n_nodes && c->failed == XM_OK;) {
        const struct xm_trie_node *node = &t->nodes[i];
        const uint32_t next = xm_set_next(c, path[node->depth - 1], node->byte);
        const uint32_t behind = t->nodes[node->end].tokens;
        if (next == XM_SET_DEAD) {
            if (w->takes_away)
                clear_tokens(t, node->tokens, behind, words);
            i = node->end;
            continue;
        }
        if (takes_all(&c->sets[next], node)) {
            if (!w->takes_away)
                set_tokens(t, node->tokens, behind, words);
            i = node->end;
            continue;
        }
        if (!w->takes_away)
            set_tokens(t, node->tokens, t->nodes[i + 1].tokens, words);
        path[node->depth] = next;
        if (c->sets[next].leaves && node->end > i + 1)
            add_exit(w, i, next);
        i++;
    }
}

/* Returns an entry for a new local mask: an unused one, or the least recently used. */
static struct xm_local_mask *
take_local(struct xm_constraint *c)
{
    struct xm_local_mask *m = &c->local[0];
    for (size_t i = 1; i < LOCAL_MASKS_KEPT; i++)
        if (c->local[i].used < m->used)
            m = &c->local[i];
    if (m->used > 0 && m->set < c->n_sets)
        c->sets[m->set].mask = -1;
    if (!m->words)
        m->words = xm_malloc(c->n_words * sizeof(*m->words));
    if (!m->words)
        xm_constraint_fail(c, XM_NO_MEMORY, "the tokens that a grammar allows");
    m->n_exits = 0;
    m->used = 0;
    return m;
}

static const struct xm_local_mask *
local_mask(struct xm_constraint *c, const struct xm_token_trie *t, uint32_t set)
{
    const bool keeps = t == c->trie;
    if (keeps && c->sets[set].mask >= 0) {
        struct xm_local_mask *m = &c->local[c->sets[set].mask];
        m->used = ++c->clock;
        return m;
    }
    struct local_walk w = {.c = c, .trie = t, .m = take_local(c)};
    if (c->failed == XM_OK)
        walk_local(&w, set);
    if (keeps && c->failed == XM_OK) {
        w.m->set = set;
        w.m->used = ++c->clock;
        c->sets[set].mask = (int32_t)(w.m - c->local);
    }
    return w.m;
}

/* ---- beyond a rule ---------------------------------------------------------------- */

/* Finds the ways that follow when the rule of `way` is left. Returns their number; they begin at
 * *first in c->continued. */
static size_t
expand(struct xm_constraint *c, struct xm_way way, size_t *first)
{
    const uint64_t hash = xm_hash_number((uint64_t)way.set << 32 | way.stack);
    struct xm_hash_probe p = xm_hash_begin(hash);
    while (xm_hash_next(&c->expansion_index, &p)) {
        const struct xm_expansion *e = &c->expansions[p.item];
        if (e->from.set == way.set && e->from.stack == way.stack) {
            *first = e->first;
            return e->n;
        }
    }
    xm_closure_begin(c, false);
    for (uint32_t i = 0; i < c->sets[way.set].n; i++) {
        const uint32_t state = c->members[c->sets[way.set].first + i].state;
        if (c->g->states[state].kind == XM_STATE_FINAL)
            xm_closure_return(c, way.stack);
        else if (c->g->states[state].kind == XM_STATE_CALL)
            xm_closure_call(c, state, way.stack);
    }
    xm_closure_run(c);
    *first = c->continued.n;
    xm_ways_of(c, &c->work, &c->continued);
    struct xm_expansion *grown = xm_grow(c->expansions, &c->expansions_capacity,
                                         c->n_expansions + 1, sizeof(*grown));
    c->expansions = grown ? grown : c->expansions;
    if (!grown || !xm_hash_add(&c->expansion_index, hash, (uint32_t)c->n_expansions)) {
        xm_constraint_fail(c, XM_NO_MEMORY, "the states of a grammar");
        return 0;
    }
    const size_t n = c->continued.n - *first;
    c->expansions[c->n_expansions++] =
        (struct xm_expansion){way, (uint32_t)*first, (uint32_t)n};
    return n;
}

/* Adds a way to the ways of the current node, which are c->level.list[from..], unless it is
 * there. */
static void
add_way(struct xm_constraint *c, size_t from, struct xm_way way)
{
    for (size_t i = from; i < c->level.n; i++)
        if (c->level.list[i].set == way.set && c->level.list[i].stack == way.stack)
            return;
    if (c->level.n - from >= MOST_WAYS)
        xm_constraint_fail(
            c, XM_UNSUPPORTED,
            "the grammar is too ambiguous: it can read a token in too many ways");
    else
        xm_ways_add(c, &c->level, way);
}

/* Computes the ways of a node and appends them to c->level: the ways of its parent, [from, to),
 * after reading the node's byte, and the ways that follow where their rules may be left. False:
 * there is none. */
static bool
read_node(struct xm_constraint *c, size_t from, size_t to, uint8_t byte, bool has_below)
{
    for (size_t i = from; i < to && c->failed == XM_OK; i++) {
        const struct xm_way way = c->level.list[i];
        const uint32_t next = xm_set_next(c, way.set, byte);
        size_t first = 0;
        if (next == XM_SET_DEAD)
            continue;
        add_way(c, to, (struct xm_way){next, way.stack});
        if (!c->sets[next].leaves || !has_below)
            continue;
        const size_t n = expand(c, (struct xm_way){next, way.stack}, &first);
        for (size_t k = 0; k < n && c->failed == XM_OK; k++)
            add_way(c, to, c->continued.list[first + k]);
    }
    return c->level.n > to && c->failed == XM_OK;
}

static bool
any_takes_all(const struct xm_constraint *c, size_t from, const struct xm_trie_node *node)
{
    for (size_t i = from; i < c->level.n; i++)
        if (takes_all(&c->sets[c->level.list[i].set], node))
            return true;
    return false;
}

/* Walks the subtree below node `from` with the ways in c->level, and adds the allowed tokens to
 * `words`. */
static void
walk_ways(struct xm_constraint *c, const struct xm_token_trie *t, uint32_t from,
          uint64_t *words)
{
    size_t starts[XM_TRIE_DEEPEST + 2]; /* start of each depth's ways in c->level */
    const uint32_t top = t->nodes[from].depth;
    starts[top] = 0;
    starts[top + 1] = c->level.n;
    for (uint32_t i = from + 1; i < t->nodes[from].end && c->failed == XM_OK;) {
        const struct xm_trie_node *node = &t->nodes[i];
        const size_t begin = starts[node->depth - 1], end = starts[node->depth];
        c->level.n = end;
        if (!read_node(c, begin, end, node->byte, node->end > i + 1)) {
            i = node->end;
            continue;
        }
        starts[node->depth + 1] = c->level.n;
        if (any_takes_all(c, end, node)) {
            set_tokens(t, node->tokens, t->nodes[node->end].tokens, words);
            i = node->end;
        } else {
            set_tokens(t, node->tokens, t->nodes[i + 1].tokens, words);
            i++;
        }
    }
}

static void
follow_exits(struct xm_constraint *c, const struct xm_token_trie *t,
             const struct xm_local_mask *m, uint32_t stack, uint64_t *words)
{
    for (size_t i = 0; i < m->n_exits && c->failed == XM_OK; i++) {
        size_t first = 0;
        const size_t n = expand(c, (struct xm_way){m->exits[i].set, stack}, &first);
        c->level.n = 0;
        for (size_t k = 0; k < n && c->failed == XM_OK; k++)
            add_way(c, 0, c->continued.list[first + k]);
        if (n > 0 && c->failed == XM_OK)
            walk_ways(c, t, m->exits[i].node, words);
    }
}

/* ---- masks ------------------------------------------------------------------------ */

static uint64_t
hash_ways(const struct xm_ways *w)
{
    return xm_hash_bytes(XM_HASH_SEED, w->list, w->n * sizeof(*w->list));
}

static struct xm_mask *
find_mask(struct xm_constraint *c, uint64_t hash)
{
    for (size_t i = 0; i < MASKS_KEPT; i++) {
        struct xm_mask *m = &c->masks[i];
        if (m->used > 0 && m->hash == hash && m->key.n == c->ways.n &&
            memcmp(m->key.list, c->ways.list, m->key.n * sizeof(*m->key.list)) == 0) {
            m->used = ++c->clock;
            return m;
        }
    }
    return NULL;
}

/* Keeps the mask in c->out. No memory is not a failure: the mask is only computed again. */
static void
keep_mask(struct xm_constraint *c, uint64_t hash)
{
    struct xm_mask *m = &c->masks[0];
    for (size_t i = 1; i < MASKS_KEPT; i++)
        if (c->masks[i].used < m->used)
            m = &c->masks[i];
    m->used = 0;
    struct xm_way *key = xm_grow(m->key.list, &m->key.capacity, c->ways.n, sizeof(*key));
    if (!m->words)
        m->words = xm_malloc(c->n_words * sizeof(*m->words));
    m->key.list = key ? key : m->key.list;
    if (!key || !m->words)
        return;
    memcpy(m->key.list, c->ways.list, c->ways.n * sizeof(*key));
    memcpy(m->words, c->out, c->n_words * sizeof(*m->words));
    m->key.n = c->ways.n;
    m->hash = hash;
    m->used = ++c->clock;
}

static void
compute(struct xm_constraint *c, const struct xm_token_trie *t)
{
    memset(c->out, 0, c->n_words * sizeof(*c->out));
    c->continued.n = c->n_expansions = 0;
    xm_hash_clear(&c->expansion_index);
    for (size_t i = 0; i < c->ways.n && c->failed == XM_OK; i++) {
        const struct xm_way way = c->ways.list[i];
        const struct xm_local_mask *m = local_mask(c, t, way.set);
        for (size_t k = 0; k < c->n_words && c->failed == XM_OK; k++)
            c->out[k] |= m->words[k];
        follow_exits(c, t, m, way.stack, c->out);
    }
}

/* Adds the tokens that the grammar names here. */
static void
add_named(struct xm_constraint *c)
{
    for (size_t i = 0; i < c->live.n; i++) {
        const struct xm_grammar_state *s = &c->g->states[c->live.list[i].at.state];
        if (s->kind == XM_STATE_TOKEN)
            c->out[c->token_ids[s->b] / 64] |= (uint64_t)1 << c->token_ids[s->b] % 64;
    }
}

static void
find_ways(struct xm_constraint *c)
{
    struct xm_threads *w = &c->work;
    xm_closure_begin(c, false);
    struct xm_thread *grown =
        xm_grow(w->list, &w->capacity, c->live.n + 1, sizeof(*grown));
    if (!grown) {
        xm_constraint_fail(c, XM_NO_MEMORY, "the state of a grammar");
        return;
    }
    w->list = grown;
    w->n = c->live.n;
    memcpy(w->list, c->live.list, c->live.n * sizeof(*w->list));
    c->ways.n = 0;
    xm_ways_of(c, w, &c->ways);
}

enum xm_status
xm_constraint_allowed(struct xm_constraint *c, bool first, struct xm_token_bits *out,
                      struct xm_error *err)
{
    const struct xm_token_trie *t = first ? c->first_trie : c->trie;
    c->failed = XM_OK;
    c->err = err;
    *out = (struct xm_token_bits){c->out, c->n_words};
    memset(c->out, 0, c->n_words * sizeof(*c->out));
    if (c->live.n == 0)
        return XM_OK;
    if (c->n_sets > SETS_KEPT || c->n_members > MEMBERS_KEPT)
        xm_sets_drop(c);
    find_ways(c);
    if (c->failed == XM_OK && c->ways.n > 0) {
        const uint64_t hash = hash_ways(&c->ways);
        const struct xm_mask *kept = t == c->trie ? find_mask(c, hash) : NULL;
        if (kept)
            memcpy(c->out, kept->words, c->n_words * sizeof(*c->out));
        else
            compute(c, t);
        if (!kept && c->failed == XM_OK && t == c->trie)
            keep_mask(c, hash);
    }
    if (c->failed == XM_OK)
        add_named(c);
    return c->failed;
}
