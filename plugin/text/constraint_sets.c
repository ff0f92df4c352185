/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "plugin/text/constraint_parts.h"

/* ---- members ---------------------------------------------------------------------- */

/* Returns a count that is equivalent for reading one token: counts so far from both bounds of a
 * repetition that no token reaches them are mapped to one value, to keep the number of sets
 * small. */
static uint32_t
near_count(const struct xm_constraint *c, const struct xm_grammar_state *s,
           uint32_t count)
{
    const uint32_t far = (uint32_t)c->trie->longest + 1;
    if (count < s->x && s->x - count > far)
        return s->x - far;
    if (count > s->x && (s->y == XM_UNBOUNDED || s->y - count >= far))
        return s->x;
    return count;
}

static int
compare_places(const struct xm_place *a, const struct xm_place *b)
{
    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return a->sub < b->sub ? -1 : a->sub > b->sub;
}

static int
compare_by_place(const void *a, const void *b)
{
    const struct xm_thread *x = a, *y = b;
    return compare_places(&x->at, &y->at);
}

static int
compare_by_stack(const void *a, const void *b)
{
    const struct xm_thread *x = a, *y = b;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return compare_places(&x->at, &y->at);
}

/* Normalises threads[n]: maps counts by near_count, sorts by place, drops repeated places. Returns
 * the number left. */
static size_t
normalise(const struct xm_constraint *c, struct xm_thread *threads, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const struct xm_grammar_state *s = &c->g->states[threads[i].at.state];
        if (s->kind == XM_STATE_UNITS)
            threads[i].at.count = near_count(c, s, threads[i].at.count);
    }
    qsort(threads, n, sizeof(*threads), compare_by_place);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || compare_by_place(&threads[kept - 1], &threads[i]) != 0)
            threads[kept++] = threads[i];
    return kept;
}

/* ---- characters that lead back ---------------------------------------------------- */

/* Returns whether the same state may read the next unit right after one, as "[a-z]" does in "([a-z]
 * | …)*". The search is limited to MOST states: loops with more states are not found. */
static bool
leads_back(const struct xm_constraint *c, uint32_t state)
{
    enum { MOST = 64 };
    uint32_t seen[MOST];
    size_t n = 0;
    seen[n++] = c->g->states[state].a;
    for (size_t i = 0; i < n; i++) {
        const struct xm_grammar_state *s = &c->g->states[seen[i]];
        const bool skips =
            s->kind == XM_STATE_SPLIT || (s->kind == XM_STATE_UNITS && s->x == 0);
        const uint32_t next[2] = {s->a, s->b};
        if (seen[i] == state)
            return true;
        for (int k = 0; skips && k < (s->kind == XM_STATE_SPLIT ? 2 : 1); k++) {
            bool known = false;
            for (size_t j = 0; j < n; j++)
                known |= seen[j] == next[k];
            if (!known && n < MOST)
                seen[n++] = next[k];
        }
    }
    return false;
}

static bool
is_loop(struct xm_constraint *c, uint32_t state)
{
    const struct xm_grammar_state *s = &c->g->states[state];
    if (s->y == XM_UNBOUNDED)
        return true;
    if (s->y > 1)
        return false;
    if (c->is_loop[state] == 0)
        c->is_loop[state] = leads_back(c, state) ? 2 : 1;
    return c->is_loop[state] == 2;
}

static unsigned
count_bits(const uint64_t words[2])
{
    unsigned n = 0;
    for (uint64_t w = words[0]; w; w &= w - 1)
        n++;
    for (uint64_t w = words[1]; w; w &= w - 1)
        n++;
    return n;
}

/* Sets the loop of a set: of its places that read characters repeatedly, the one that accepts the
 * most characters. */
static void
find_loop(struct xm_constraint *c, struct xm_set *set)
{
    unsigned best = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        const struct xm_place *p = &c->members[set->first + i];
        const struct xm_grammar_state *s = &c->g->states[p->state];
        if (s->kind != XM_STATE_UNITS || p->sub != 0)
            continue;
        const struct xm_unit *u = &c->g->units[s->b];
        const uint32_t room = is_loop(c, p->state) ? XM_UNBOUNDED : s->y - p->count;
        const unsigned score = (count_bits(u->ascii) + (u->all_non_ascii ? 64 : 0)) *
                               (room > 64 ? 64 : room);
        if (room <= 1 || score <= best)
            continue;
        best = score;
        set->loops = true;
        set->all_non_ascii = u->all_non_ascii;
        set->ascii[0] = u->ascii[0];
        set->ascii[1] = u->ascii[1];
        set->room = room;
    }
}

/* ---- sets ------------------------------------------------------------------------- */

static uint64_t
hash_places(const struct xm_thread *threads, size_t n)
{
    uint64_t hash = XM_HASH_SEED;
    for (size_t i = 0; i < n; i++)
        hash = xm_hash_bytes(hash, &threads[i].at, sizeof(threads[i].at));
    return hash;
}

static uint32_t
find_set(const struct xm_constraint *c, const struct xm_thread *threads, size_t n,
         uint64_t hash)
{
    struct xm_hash_probe p = xm_hash_begin(hash);
    while (xm_hash_next(&c->set_index, &p)) {
        const struct xm_set *s = &c->sets[p.item];
        size_t same = 0;
        while (s->n == n && same < n &&
               compare_places(&c->members[s->first + same], &threads[same].at) == 0)
            same++;
        if (s->n == n && same == n)
            return p.item;
    }
    return XM_SET_UNKNOWN;
}

static bool
reserve(struct xm_constraint *c, size_t n)
{
    if (c->n_sets >= MOST_SETS || c->n_members + n > MOST_MEMBERS) {
        xm_constraint_fail(
            c, XM_UNSUPPORTED,
            "the grammar needs too many states at this position of the text");
        return false;
    }
    struct xm_set *sets =
        xm_grow(c->sets, &c->sets_capacity, c->n_sets + 1, sizeof(*sets));
    c->sets = sets ? sets : c->sets;
    struct xm_place *members =
        xm_grow(c->members, &c->members_capacity, c->n_members + n, sizeof(*members));
    c->members = members ? members : c->members;
    if (sets && members)
        return true;
    xm_constraint_fail(c, XM_NO_MEMORY, "the states of a grammar");
    return false;
}

uint32_t
xm_set_of(struct xm_constraint *c, struct xm_thread *threads, size_t n)
{
    if (n == 0 || c->failed != XM_OK)
        return XM_SET_DEAD;
    n = normalise(c, threads, n);
    const uint64_t hash = hash_places(threads, n);
    const uint32_t found = find_set(c, threads, n, hash);
    if (found != XM_SET_UNKNOWN)
        return found;
    if (c->n_sets == 0) { /* set 0 is XM_SET_DEAD */
        if (!reserve(c, 1))
            return XM_SET_DEAD;
        c->sets[c->n_sets++] = (struct xm_set){.mask = -1};
    }
    if (!reserve(c, n))
        return XM_SET_DEAD;
    if (!xm_hash_add(&c->set_index, hash, (uint32_t)c->n_sets)) {
        xm_constraint_fail(c, XM_NO_MEMORY, "the states of a grammar");
        return XM_SET_DEAD;
    }
    struct xm_set set = {.first = (uint32_t)c->n_members, .n = (uint32_t)n, .mask = -1};
    for (size_t i = 0; i < n; i++) {
        const uint8_t kind = c->g->states[threads[i].at.state].kind;
        c->members[set.first + i] = threads[i].at;
        set.leaves |= kind == XM_STATE_FINAL || kind == XM_STATE_CALL;
    }
    c->n_members += n;
    find_loop(c, &set);
    c->sets[c->n_sets] = set;
    return (uint32_t)c->n_sets++;
}

uint32_t
xm_set_make_next(struct xm_constraint *c, uint32_t set, uint8_t byte)
{
    if (c->failed != XM_OK || set == XM_SET_DEAD)
        return XM_SET_DEAD;
    if (!c->sets[set].next) {
        uint32_t *next = xm_malloc(256 * sizeof(*next));
        if (!next) {
            xm_constraint_fail(c, XM_NO_MEMORY, "the states of a grammar");
            return XM_SET_DEAD;
        }
        memset(next, 0xff, 256 * sizeof(*next));
        c->sets[set].next = next;
    }
    xm_closure_begin(c, true);
    for (uint32_t i = 0; i < c->sets[set].n; i++) {
        const struct xm_thread t = {c->members[c->sets[set].first + i], XM_NO_FRAME};
        xm_closure_read(c, &t, byte);
    }
    xm_closure_run(c);
    const uint32_t next = xm_set_of(c, c->work.list, c->work.n);
    if (c->failed == XM_OK)
        c->sets[set].next[byte] = next;
    return next;
}

void
xm_masks_drop(struct xm_constraint *c)
{
    for (size_t i = 0; i < MASKS_KEPT; i++) {
        xm_free(c->masks[i].words);
        xm_free(c->masks[i].key.list);
        c->masks[i] = (struct xm_mask){0};
    }
}

void
xm_sets_drop(struct xm_constraint *c)
{
    xm_masks_drop(c);
    for (size_t i = 0; i < c->n_sets; i++)
        xm_free(c->sets[i].next);
    for (size_t i = 0; i < LOCAL_MASKS_KEPT; i++) {
        xm_free(c->local[i].words);
        xm_free(c->local[i].exits);
        c->local[i] = (struct xm_local_mask){0};
    }
    c->n_sets = c->n_members = 0;
    xm_hash_clear(&c->set_index);
}

/* ---- ways ------------------------------------------------------------------------- */

bool
xm_ways_add(struct xm_constraint *c, struct xm_ways *ways, struct xm_way way)
{
    struct xm_way *grown =
        xm_grow(ways->list, &ways->capacity, ways->n + 1, sizeof(*grown));
    if (!grown) {
        xm_constraint_fail(c, XM_NO_MEMORY, "the states of a grammar");
        return false;
    }
    ways->list = grown;
    ways->list[ways->n++] = way;
    return true;
}

void
xm_ways_of(struct xm_constraint *c, struct xm_threads *threads, struct xm_ways *out)
{
    size_t end;
    if (threads->n > 0)
        qsort(threads->list, threads->n, sizeof(*threads->list), compare_by_stack);
    for (size_t i = 0; i < threads->n && c->failed == XM_OK; i = end) {
        const uint32_t stack = threads->list[i].stack;
        for (end = i + 1; end < threads->n && threads->list[end].stack == stack;)
            end++;
        const uint32_t set = xm_set_of(c, &threads->list[i], end - i);
        if (set != XM_SET_DEAD)
            xm_ways_add(c, out, (struct xm_way){set, stack});
    }
}
