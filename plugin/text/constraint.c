/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/constraint.h"

#include <inttypes.h>
#include <string.h>

#include "plugin/text/constraint_parts.h"
#include "runtime/util/utf8.h"

void
xm_constraint_fail(struct xm_constraint *c, enum xm_status status, const char *what)
{
    if (c->failed != XM_OK)
        return;
    c->failed = status == XM_NO_MEMORY ? xm_no_memory(c->err, "%s", what)
                                       : xm_fail(c->err, status, "%s", what);
}

/* ---- closures --------------------------------------------------------------------- */

static bool
equal_threads(const struct xm_thread *a, const struct xm_thread *b)
{
    return a->at.state == b->at.state && a->at.count == b->at.count &&
           a->at.sub == b->at.sub && a->stack == b->stack;
}

static uint64_t
hash_thread(const struct xm_thread *t)
{
    return xm_hash_number(((uint64_t)t->at.state << 32 | t->stack) ^
                          xm_hash_number((uint64_t)t->at.count << 32 | t->at.sub));
}

/* Up to FEW threads are compared one by one; more are looked up by their hash. */
enum { FEW = 24 };

static bool
has_thread(const struct xm_constraint *c, const struct xm_thread *t)
{
    const struct xm_threads *w = &c->work;
    for (size_t i = 0; i < w->n && w->n <= FEW; i++)
        if (equal_threads(&w->list[i], t))
            return true;
    if (w->n <= FEW)
        return false;
    struct xm_hash_probe p = xm_hash_begin(hash_thread(t));
    while (xm_hash_next(&c->work_index, &p))
        if (equal_threads(&w->list[p.item], t))
            return true;
    return false;
}

/* Adds the newest thread of the list to the hash index, if the list is longer than FEW. False: no
 * memory. */
static bool
index_thread(struct xm_constraint *c)
{
    const struct xm_threads *w = &c->work;
    if (w->n <= FEW)
        return true;
    for (size_t i = w->n == FEW + 1 ? 0 : w->n - 1; i < w->n; i++)
        if (!xm_hash_add(&c->work_index, hash_thread(&w->list[i]), (uint32_t)i))
            return false;
    return true;
}

static void
add_thread(struct xm_constraint *c, struct xm_thread t)
{
    struct xm_threads *w = &c->work;
    if (c->failed != XM_OK || has_thread(c, &t))
        return;
    if (w->n >= MOST_THREADS) {
        xm_constraint_fail(c, XM_UNSUPPORTED,
                           "the grammar is too ambiguous: it can read this text in too "
                           "many ways at once");
        return;
    }
    struct xm_thread *grown = xm_grow(w->list, &w->capacity, w->n + 1, sizeof(*grown));
    if (!grown) {
        xm_constraint_fail(c, XM_NO_MEMORY, "the state of a grammar");
        return;
    }
    w->list = grown;
    w->list[w->n++] = t;
    if (!index_thread(c))
        xm_constraint_fail(c, XM_NO_MEMORY, "the state of a grammar");
}

void
xm_closure_begin(struct xm_constraint *c, bool is_local)
{
    struct xm_hash_index *index = &c->work_index;
    /* clearing an index that was once large costs more than the few entries it holds now */
    if (index->n > 0 && (uint64_t)index->n * 32 < (uint64_t)index->mask)
        xm_hash_free(index);
    else if (index->n > 0)
        xm_hash_clear(index);
    c->work.n = 0;
    c->is_local = is_local;
    c->ended = false;
}

void
xm_closure_add(struct xm_constraint *c, uint32_t state, uint32_t stack)
{
    add_thread(c, (struct xm_thread){{state, 0, 0}, stack});
}

static uint64_t
hash_frame(const struct xm_frame *f)
{
    return xm_hash_number(((uint64_t)f->call << 32 | f->parent) ^
                          xm_hash_number(f->count));
}

/* Returns the frame with these contents; equal frames are stored once. */
static uint32_t
find_frame(struct xm_constraint *c, struct xm_frame f)
{
    const uint64_t hash = hash_frame(&f);
    struct xm_hash_probe p = xm_hash_begin(hash);
    while (xm_hash_next(&c->frame_index, &p)) {
        const struct xm_frame *o = &c->frames[p.item];
        if (o->call == f.call && o->count == f.count && o->parent == f.parent)
            return p.item;
    }
    if (c->n_frames >= MOST_FRAMES) {
        xm_constraint_fail(c, XM_UNSUPPORTED,
                           "the text nests the rules of the grammar too deeply");
        return XM_NO_FRAME;
    }
    struct xm_frame *grown =
        xm_grow(c->frames, &c->frames_capacity, c->n_frames + 1, sizeof(*grown));
    if (grown)
        c->frames = grown;
    if (!grown || !xm_hash_add(&c->frame_index, hash, (uint32_t)c->n_frames)) {
        xm_constraint_fail(c, XM_NO_MEMORY, "the state of a grammar");
        return XM_NO_FRAME;
    }
    c->frames[c->n_frames] = f;
    return (uint32_t)c->n_frames++;
}

/* Opens the rule of a CALL state for its match number `count`. A call at the end of its rule needs
 * no frame: when it returns, the calling rule ends as well. */
static void
open_rule(struct xm_constraint *c, uint32_t call, uint32_t count, uint32_t parent)
{
    const struct xm_grammar_state *s = &c->g->states[call];
    uint32_t stack = parent;
    if (s->y > 1 || c->g->states[s->a].kind != XM_STATE_FINAL)
        stack = find_frame(c, (struct xm_frame){call, count, parent});
    if (c->failed == XM_OK)
        xm_closure_add(c, s->b, stack);
}

void
xm_closure_call(struct xm_constraint *c, uint32_t state, uint32_t stack)
{
    const struct xm_grammar_state *s = &c->g->states[state];
    if (s->x == 0)
        xm_closure_add(c, s->a, stack);
    open_rule(c, state, 1, stack);
}

void
xm_closure_return(struct xm_constraint *c, uint32_t stack)
{
    if (stack == XM_NO_FRAME) {
        c->ended = true;
        return;
    }
    const struct xm_frame f = c->frames[stack];
    const struct xm_grammar_state *s = &c->g->states[f.call];
    uint32_t next = f.count + 1;
    if (s->y == XM_UNBOUNDED && next > s->x)
        next = s->x > 0 ? s->x : 1; /* above the lower bound the number does not matter */
    if (f.count >= s->x)
        xm_closure_add(c, s->a, f.parent);
    if (f.count < s->y && s->y > 1)
        open_rule(c, f.call, next, f.parent);
}

/* Adds the thread behind one more complete unit. */
static void
count_unit(struct xm_constraint *c, const struct xm_thread *t)
{
    const struct xm_grammar_state *s = &c->g->states[t->at.state];
    uint32_t count = t->at.count + 1;
    if (s->y == XM_UNBOUNDED && count > s->x)
        count = s->x;
    if (count == s->y)
        xm_closure_add(c, s->a, t->stack);
    else
        add_thread(c, (struct xm_thread){{t->at.state, count, 0}, t->stack});
}

static bool
reads(const struct xm_constraint *c, const struct xm_thread *t)
{
    const uint8_t kind = c->g->states[t->at.state].kind;
    return kind == XM_STATE_TEXT || kind == XM_STATE_UNITS || kind == XM_STATE_TOKEN ||
           (c->is_local && (kind == XM_STATE_FINAL || kind == XM_STATE_CALL));
}

void
xm_closure_run(struct xm_constraint *c)
{
    struct xm_threads *w = &c->work;
    size_t kept = 0;
    for (size_t i = 0; i < w->n && c->failed == XM_OK; i++) {
        const struct xm_thread t = w->list[i];
        const struct xm_grammar_state *s = &c->g->states[t.at.state];
        if (s->kind == XM_STATE_SPLIT) {
            xm_closure_add(c, s->a, t.stack);
            xm_closure_add(c, s->b, t.stack);
        } else if (s->kind == XM_STATE_UNITS && t.at.sub == 0 && t.at.count >= s->x) {
            xm_closure_add(c, s->a, t.stack);
        } else if (s->kind == XM_STATE_FINAL && !c->is_local) {
            xm_closure_return(c, t.stack);
        } else if (s->kind == XM_STATE_CALL && !c->is_local) {
            xm_closure_call(c, t.at.state, t.stack);
        }
    }
    for (size_t i = 0; i < w->n; i++) {
        w->list[kept] = w->list[i];
        kept += reads(c, &w->list[i]);
    }
    w->n = kept;
}

void
xm_closure_read(struct xm_constraint *c, const struct xm_thread *t, uint8_t byte)
{
    const struct xm_grammar *g = c->g;
    const struct xm_grammar_state *s = &g->states[t->at.state];
    if (s->kind == XM_STATE_TEXT) {
        if ((uint8_t)g->bytes[s->x + t->at.sub] != byte)
            return;
        if (t->at.sub + 1 == s->y)
            xm_closure_add(c, s->a, t->stack);
        else
            add_thread(c, (struct xm_thread){{t->at.state, 0, t->at.sub + 1}, t->stack});
    } else if (s->kind == XM_STATE_UNITS) {
        const struct xm_unit *u = &g->units[s->b];
        const uint32_t at = t->at.sub == 0 ? u->start : t->at.sub - 1;
        const struct xm_unit_node *node = &g->unit_nodes[u->first + at];
        for (uint32_t i = 0; i < node->n; i++) {
            const struct xm_unit_edge *e = &g->unit_edges[node->first + i];
            if (byte < e->low || byte > e->high)
                continue;
            if (e->next == XM_UNIT_END)
                count_unit(c, t);
            else
                add_thread(c, (struct xm_thread){{t->at.state, t->at.count, e->next + 1u},
                                                 t->stack});
        }
    }
}

/* ---- the text --------------------------------------------------------------------- */

/* Makes the closure the state of the text. */
static void
settle(struct xm_constraint *c)
{
    const struct xm_threads old = c->live;
    c->live = c->work;
    c->work = old;
    c->can_end = c->ended;
}

static void
step(struct xm_constraint *c, uint8_t byte)
{
    xm_closure_begin(c, false);
    for (size_t i = 0; i < c->live.n; i++)
        xm_closure_read(c, &c->live.list[i], byte);
    xm_closure_run(c);
    settle(c);
}

static void
begin(struct xm_constraint *c)
{
    xm_closure_begin(c, false);
    xm_closure_add(c, c->g->start, XM_NO_FRAME);
    xm_closure_run(c);
    settle(c);
    c->is_at_start = true;
}

/* Drops all frames except those that the text's threads need, and all masks, because they refer to
 * frames. */
static void
drop_frames(struct xm_constraint *c)
{
    uint32_t *moved = xm_malloc(c->n_frames * sizeof(*moved));
    uint32_t kept = 0;
    if (!moved) {
        xm_constraint_fail(c, XM_NO_MEMORY, "the state of a grammar");
        return;
    }
    memset(moved, 0, c->n_frames * sizeof(*moved));
    for (size_t i = 0; i < c->live.n; i++)
        for (uint32_t f = c->live.list[i].stack; f != XM_NO_FRAME && !moved[f];
             f = c->frames[f].parent)
            moved[f] = 1;
    xm_masks_drop(c);
    xm_hash_clear(&c->frame_index);
    /* a parent has a smaller index than its frames */
    for (size_t i = 0; i < c->n_frames; i++) {
        if (!moved[i])
            continue;
        struct xm_frame f = c->frames[i];
        if (f.parent != XM_NO_FRAME)
            f.parent = moved[f.parent];
        c->frames[kept] = f;
        if (!xm_hash_add(&c->frame_index, hash_frame(&f), kept))
            xm_constraint_fail(c, XM_NO_MEMORY, "the state of a grammar");
        moved[i] = kept++;
    }
    for (size_t i = 0; i < c->live.n; i++)
        if (c->live.list[i].stack != XM_NO_FRAME)
            c->live.list[i].stack = moved[c->live.list[i].stack];
    c->n_frames = c->frames_needed = kept;
    xm_free(moved);
}

static enum xm_status
refuse(struct xm_constraint *c)
{
    if (c->failed == XM_OK && c->live.n == 0 && !c->can_end)
        xm_constraint_fail(c, XM_INVALID, "the grammar does not allow this token here");
    return c->failed;
}

static void
begin_call(struct xm_constraint *c, struct xm_error *err)
{
    c->failed = XM_OK;
    c->err = err;
}

/* Reads bytes. Afterwards the text does not match if no thread is left and can_end is false, or if
 * the call has failed. keeps_frames: threads outside of c->live use frames, too, so none are
 * dropped. */
static void
read_bytes(struct xm_constraint *c, const char *bytes, size_t n, bool keeps_frames)
{
    for (size_t i = 0; i < n && c->failed == XM_OK; i++) {
        if (c->live.n == 0) {
            c->can_end = false;
            return;
        }
        step(c, (uint8_t)bytes[i]);
        if (c->failed == XM_OK && !keeps_frames &&
            c->n_frames > FRAMES_KEPT + 2 * c->frames_needed)
            drop_frames(c);
    }
    c->is_at_start &= n == 0;
}

enum xm_status
xm_constraint_accept_bytes(struct xm_constraint *c, const char *bytes, size_t n,
                           struct xm_error *err)
{
    begin_call(c, err);
    read_bytes(c, bytes, n, false);
    return refuse(c);
}

/* Adds to the closure the states behind each TOKEN state of `from` that names this id. */
static void
read_token(struct xm_constraint *c, const struct xm_threads *from, int32_t id)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct xm_grammar_state *s = &c->g->states[from->list[i].at.state];
        if (s->kind == XM_STATE_TOKEN && c->token_ids[s->b] == id)
            xm_closure_add(c, s->a, from->list[i].stack);
    }
}

static bool
copy_threads(const struct xm_threads *from, struct xm_threads *to)
{
    struct xm_thread *grown =
        xm_grow(to->list, &to->capacity, from->n + 1, sizeof(*grown));
    if (!grown)
        return false;
    to->list = grown;
    to->n = from->n;
    if (from->n > 0)
        memcpy(to->list, from->list, from->n * sizeof(*from->list));
    return true;
}

enum xm_status
xm_constraint_accept(struct xm_constraint *c, int32_t id, bool first,
                     struct xm_error *err)
{
    const struct xm_slice bytes = xm_trie_bytes(first ? c->first_trie : c->trie, id);
    begin_call(c, err);
    if (!copy_threads(&c->live, &c->before))
        xm_constraint_fail(c, XM_NO_MEMORY, "the state of a grammar");
    bool has_token = false;
    for (size_t i = 0; i < c->g->n_tokens; i++)
        has_token |= c->token_ids[i] == id;
    read_bytes(c, bytes.text, bytes.n, has_token);
    if (bytes.n == 0) {
        c->live.n = 0;
        c->can_end = false;
    }
    if (has_token && c->failed == XM_OK) {
        const bool ended = c->can_end;
        xm_closure_begin(c, false);
        for (size_t i = 0; i < c->live.n; i++)
            add_thread(c, c->live.list[i]);
        read_token(c, &c->before, id);
        xm_closure_run(c);
        c->ended |= ended;
        settle(c);
    }
    c->is_at_start = false;
    return refuse(c);
}

bool
xm_constraint_names(const struct xm_constraint *c, int32_t id)
{
    for (size_t i = 0; i < c->live.n; i++) {
        const struct xm_grammar_state *s = &c->g->states[c->live.list[i].at.state];
        if (s->kind == XM_STATE_TOKEN && c->token_ids[s->b] == id)
            return true;
    }
    return false;
}

enum xm_status
xm_constraint_accept_named(struct xm_constraint *c, int32_t id, struct xm_error *err)
{
    begin_call(c, err);
    if (!copy_threads(&c->live, &c->before))
        xm_constraint_fail(c, XM_NO_MEMORY, "the state of a grammar");
    if (c->failed == XM_OK) {
        xm_closure_begin(c, false);
        read_token(c, &c->before, id);
        xm_closure_run(c);
        settle(c);
    }
    c->is_at_start = false;
    return refuse(c);
}

bool
xm_constraint_can_end(const struct xm_constraint *c)
{
    return c->can_end;
}

bool
xm_constraint_is_over(const struct xm_constraint *c)
{
    return c->live.n == 0;
}

bool
xm_constraint_is_at_start(const struct xm_constraint *c)
{
    return c->is_at_start;
}

/* ---- life ------------------------------------------------------------------------- */

static enum xm_status
find_tokens(struct xm_constraint *c, struct xm_error *err)
{
    const struct xm_grammar *g = c->g;
    struct xm_strbuf name = {0};
    enum xm_status s = XM_OK;
    c->token_ids = xm_calloc(g->n_tokens + 1, sizeof(*c->token_ids));
    if (!c->token_ids)
        return xm_no_memory(err, "the state of a grammar");
    for (size_t i = 0; i < g->n_tokens && s == XM_OK; i++) {
        const struct xm_grammar_token *t = &g->tokens[i];
        const size_t vocabulary = xm_tokenizer_vocab_size(c->tokenizer);
        xm_strbuf_clear(&name);
        xm_strbuf_add_n(&name, g->bytes + t->offset, t->n);
        c->token_ids[i] = t->n > 0
                              ? xm_tokenizer_id_of(c->tokenizer, xm_strbuf_text(&name))
                              : (int32_t)t->id;
        if (t->n > 0 && c->token_ids[i] < 0)
            s = xm_fail(
                err, XM_INVALID,
                "the grammar names the token %s, which the tokenizer does not have",
                xm_utf8_shown(xm_slice_of(g->bytes + t->offset, t->n)).text);
        else if (t->n == 0 && t->id >= vocabulary)
            s = xm_fail(err, XM_INVALID,
                        "the grammar names the token %" PRIu32
                        ", but the tokenizer has only %zu tokens",
                        t->id, vocabulary);
    }
    if (s == XM_OK && !xm_strbuf_ok(&name))
        s = xm_no_memory(err, "the state of a grammar");
    xm_strbuf_free(&name);
    return s;
}

static enum xm_status
open(struct xm_constraint *c, struct xm_error *err)
{
    XM_TRY(xm_tokenizer_trie(c->tokenizer, false, &c->trie, err));
    XM_TRY(xm_tokenizer_trie(c->tokenizer, true, &c->first_trie, err));
    XM_TRY(find_tokens(c, err));
    c->n_words = c->trie->n_words;
    c->out = xm_calloc(c->n_words, sizeof(*c->out));
    c->is_loop = xm_calloc(c->g->n_states, sizeof(*c->is_loop));
    return c->out && c->is_loop ? XM_OK : xm_no_memory(err, "the state of a grammar");
}

static enum xm_status
create(const struct xm_grammar *grammar, const struct xm_tokenizer *tokenizer,
       struct xm_constraint **out, struct xm_error *err)
{
    struct xm_constraint *c = xm_calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return xm_no_memory(err, "the state of a grammar");
    c->g = grammar;
    c->tokenizer = tokenizer;
    enum xm_status s = tokenizer ? open(c, err) : XM_OK;
    begin_call(c, err);
    if (s == XM_OK) {
        begin(c);
        s = c->failed;
    }
    if (s == XM_OK)
        *out = c;
    else
        xm_constraint_free(c);
    return s;
}

enum xm_status
xm_constraint_create(const struct xm_grammar *grammar,
                     const struct xm_tokenizer *tokenizer, struct xm_constraint **out,
                     struct xm_error *err)
{
    return create(grammar, tokenizer, out, err);
}

/* Copies threads and frames. Sets and masks are not copied; they are computed again when needed. */
static bool
copy_state(const struct xm_constraint *from, struct xm_constraint *c)
{
    const size_t n_tokens = from->g->n_tokens + 1;
    c->token_ids = xm_malloc(n_tokens * sizeof(*c->token_ids));
    c->out = xm_calloc(c->n_words, sizeof(*c->out));
    c->is_loop = xm_malloc(c->g->n_states * sizeof(*c->is_loop));
    c->frames =
        xm_grow(NULL, &c->frames_capacity, from->n_frames + 1, sizeof(*c->frames));
    if (!c->token_ids || !c->out || !c->is_loop || !c->frames ||
        !xm_hash_reserve(&c->frame_index, from->n_frames) ||
        !copy_threads(&from->live, &c->live))
        return false;
    memcpy(c->token_ids, from->token_ids, n_tokens * sizeof(*c->token_ids));
    memcpy(c->is_loop, from->is_loop, c->g->n_states * sizeof(*c->is_loop));
    for (; c->n_frames < from->n_frames; c->n_frames++) {
        c->frames[c->n_frames] = from->frames[c->n_frames];
        xm_hash_add(&c->frame_index, hash_frame(&c->frames[c->n_frames]),
                    (uint32_t)c->n_frames);
    }
    return true;
}

enum xm_status
xm_constraint_fork(const struct xm_constraint *from, struct xm_constraint **out,
                   struct xm_error *err)
{
    struct xm_constraint *c = xm_calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return xm_no_memory(err, "the state of a grammar");
    c->g = from->g;
    c->tokenizer = from->tokenizer;
    c->trie = from->trie;
    c->first_trie = from->first_trie;
    c->n_words = from->n_words;
    c->is_at_start = from->is_at_start;
    c->can_end = from->can_end;
    c->frames_needed = from->frames_needed;
    if (!copy_state(from, c)) {
        xm_constraint_free(c);
        return xm_no_memory(err, "the state of a grammar");
    }
    *out = c;
    return XM_OK;
}

void
xm_constraint_free(struct xm_constraint *c)
{
    if (!c)
        return;
    xm_sets_drop(c);
    xm_free(c->sets);
    xm_free(c->members);
    xm_hash_free(&c->set_index);
    xm_free(c->is_loop);
    xm_free(c->token_ids);
    xm_free(c->live.list);
    xm_free(c->work.list);
    xm_free(c->before.list);
    xm_hash_free(&c->work_index);
    xm_free(c->frames);
    xm_hash_free(&c->frame_index);
    xm_free(c->out);
    xm_free(c->ways.list);
    xm_free(c->level.list);
    xm_free(c->continued.list);
    xm_free(c->expansions);
    xm_hash_free(&c->expansion_index);
    xm_free(c);
}

static enum xm_status
match(const struct xm_grammar *g, const char *text, size_t n, bool *ends, bool *begins,
      struct xm_error *err)
{
    struct xm_constraint *c;
    *ends = *begins = false;
    XM_TRY(create(g, NULL, &c, err));
    begin_call(c, err);
    read_bytes(c, text, n, false);
    *ends = c->failed == XM_OK && c->can_end;
    *begins = c->failed == XM_OK && (c->can_end || c->live.n > 0);
    const enum xm_status s = c->failed;
    xm_constraint_free(c);
    return s;
}

enum xm_status
xm_grammar_matches(const struct xm_grammar *g, const char *text, size_t n, bool *matches,
                   struct xm_error *err)
{
    bool begins;
    return match(g, text, n, matches, &begins, err);
}

bool
xm_grammar_may_begin(const struct xm_grammar *g, const char *text, size_t n)
{
    bool ends, begins;
    return match(g, text, n, &ends, &begins, NULL) == XM_OK && begins;
}
