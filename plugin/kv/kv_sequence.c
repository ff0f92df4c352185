/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kv/kv_sequence.h"

#include <inttypes.h>
#include <string.h>

#include "plugin/kv/kv_pages.h"
#include "runtime/util/memory.h"

/* Pages first … first + n - 1 of a sequence in one group. */
struct blocks {
    int32_t *words;
    uint32_t first, n, capacity;
    /* word of the shared page that a copy has replaced for the run in progress; the copy is page
     * past / page_tokens of the sequence. XM_KV_NO_PAGE: none */
    int32_t replaced;
};

struct xm_kv_sequence {
    struct xm_kv_pool *pool;
    uint64_t past, pending; /* positions committed; positions reserved behind them  */
    uint64_t padding;       /* positions of the row before them, which are not stored */
    struct blocks *blocks;  /* by group */
    bool is_known;          /* the token ids of all positions are known */
    int32_t *ids;           /* if is_known: [past] */
    uint64_t *serials; /* if is_known: [n_serials] serials of its full pages' nodes */
    uint64_t id_capacity, n_serials;
};

static void
lock(const struct xm_kv_sequence *s)
{
    pthread_mutex_lock(&s->pool->lock);
}

static void
unlock(const struct xm_kv_sequence *s)
{
    pthread_mutex_unlock(&s->pool->lock);
}

static uint64_t
pages_of(const struct xm_kv_pool *pool, uint64_t positions)
{
    return (positions + pool->page_tokens - 1) / pool->page_tokens;
}

/* ---- making and freeing -------------------------------------------------------------- */

enum xm_status
xm_kv_sequence_create(struct xm_kv_pool *pool, struct xm_kv_sequence **out,
                      struct xm_error *err)
{
    struct xm_kv_sequence *s = xm_calloc(1, sizeof(*s));
    if (s)
        s->blocks = xm_calloc(pool->n_groups + 1, sizeof(*s->blocks));
    if (!s || !s->blocks) {
        xm_free(s);
        return xm_no_memory(err, "a sequence");
    }
    s->pool = pool;
    s->is_known = true;
    for (uint32_t g = 0; g < pool->n_groups; g++)
        s->blocks[g].replaced = XM_KV_NO_PAGE;
    *out = s;
    return XM_OK;
}

/* Releases the pages of a group behind the first `keep`. The last page is released first: so the
 * pool takes the end of a prefix, which other prompts may share, again before its beginning. */
static void
shorten(struct xm_kv_sequence *s, uint32_t group, uint64_t keep)
{
    struct blocks *b = &s->blocks[group];
    while (b->n && (uint64_t)b->first + b->n > keep)
        xm_kv_release(s->pool, group, b->words[--b->n]);
    if (b->n == 0)
        b->first = 0;
}

static void
forget_all(struct xm_kv_sequence *s)
{
    for (uint32_t g = 0; g < s->pool->n_groups; g++)
        shorten(s, g, 0);
    s->past = 0;
    s->n_serials = 0;
    s->is_known = true;
}

void
xm_kv_sequence_destroy(struct xm_kv_sequence *s)
{
    if (!s)
        return;
    xm_kv_sequence_cancel(s);
    lock(s);
    forget_all(s);
    unlock(s);
    for (uint32_t g = 0; g < s->pool->n_groups; g++)
        xm_free(s->blocks[g].words);
    xm_free(s->blocks);
    xm_free(s->ids);
    xm_free(s->serials);
    xm_free(s);
}

static bool
room_for_pages(struct blocks *b, uint64_t n)
{
    if (n <= b->capacity)
        return true;
    uint64_t capacity = b->capacity ? b->capacity : 8;
    while (capacity < n)
        capacity *= 2;
    int32_t *words =
        capacity <= INT32_MAX ? xm_realloc(b->words, capacity * sizeof(*words)) : NULL;
    if (!words)
        return false;
    b->words = words;
    b->capacity = (uint32_t)capacity;
    return true;
}

/* Makes room for the ids of `n` positions and the serials of their pages; false: no memory. */
static bool
room_for_ids(struct xm_kv_sequence *s, uint64_t n)
{
    if (n <= s->id_capacity)
        return true;
    uint64_t capacity = s->id_capacity ? s->id_capacity : 256;
    while (capacity < n)
        capacity *= 2;
    int32_t *ids = xm_realloc(s->ids, capacity * sizeof(*ids));
    s->ids = ids ? ids : s->ids;
    uint64_t *serials =
        ids ? xm_realloc(s->serials, pages_of(s->pool, capacity) * sizeof(*serials))
            : NULL;
    s->serials = serials ? serials : s->serials;
    if (!serials)
        return false;
    s->id_capacity = capacity;
    return true;
}

enum xm_status
xm_kv_sequence_fork(struct xm_kv_sequence *s, struct xm_kv_sequence **out,
                    struct xm_error *err)
{
    struct xm_kv_sequence *f = NULL;
    XM_TRY(xm_kv_sequence_create(s->pool, &f, err));
    bool fits = !s->is_known || room_for_ids(f, s->past);
    for (uint32_t g = 0; g < s->pool->n_groups; g++)
        fits &= room_for_pages(&f->blocks[g], s->blocks[g].n);
    if (!fits) {
        xm_kv_sequence_destroy(f);
        return xm_no_memory(err, "a sequence's pages");
    }
    f->past = s->past;
    f->padding = s->padding;
    f->is_known = s->is_known;
    if (s->is_known && s->past) {
        f->n_serials = s->n_serials;
        memcpy(f->ids, s->ids, s->past * sizeof(*s->ids));
        memcpy(f->serials, s->serials, s->n_serials * sizeof(*s->serials));
    }
    lock(s);
    for (uint32_t g = 0; g < s->pool->n_groups; g++) {
        struct blocks *to = &f->blocks[g];
        const struct blocks *from = &s->blocks[g];
        const uint64_t held = pages_of(s->pool, s->past);
        to->first = from->first;
        for (; to->first + to->n < held; to->n++) {
            to->words[to->n] = from->words[to->n];
            xm_kv_share(s->pool, g, to->words[to->n]);
        }
    }
    unlock(s);
    *out = f;
    return XM_OK;
}

void
xm_kv_sequence_swap(struct xm_kv_sequence *a, struct xm_kv_sequence *b)
{
    const struct xm_kv_sequence was = *a;
    *a = *b;
    *b = was;
}

struct xm_kv_pool *
xm_kv_sequence_pool(const struct xm_kv_sequence *s)
{
    return s->pool;
}

uint64_t
xm_kv_sequence_past(const struct xm_kv_sequence *s)
{
    return s->past;
}

uint64_t
xm_kv_sequence_padding(const struct xm_kv_sequence *s)
{
    return s->padding;
}

void
xm_kv_sequence_set_padding(struct xm_kv_sequence *s, uint64_t padding)
{
    s->padding = padding;
}

const int32_t *
xm_kv_sequence_pages(const struct xm_kv_sequence *s, uint32_t group, uint32_t *first,
                     uint32_t *n)
{
    const struct blocks *b = &s->blocks[group];
    *first = b->first;
    *n = b->n;
    return b->words;
}

/* Returns the first position that a token behind `past` positions sees in the layers of a group. */
static uint64_t
first_seen(const struct xm_kv_group *g, uint64_t past)
{
    return g->window && past + 1 > g->window ? past + 1 - g->window : 0;
}

void
xm_kv_sequence_truncate(struct xm_kv_sequence *s, uint64_t past)
{
    struct xm_kv_pool *pool = s->pool;
    bool is_whole = true;
    if (past >= s->past)
        return;
    lock(s);
    for (uint32_t g = 0; g < pool->n_groups; g++) {
        const struct blocks *b = &s->blocks[g];
        is_whole &=
            (uint64_t)b->first * pool->page_tokens <= first_seen(&pool->groups[g], past);
    }
    if (is_whole) {
        for (uint32_t g = 0; g < pool->n_groups; g++)
            shorten(s, g, pages_of(pool, past));
        s->past = past;
        if (s->n_serials > past / pool->page_tokens)
            s->n_serials = past / pool->page_tokens;
    } else {
        forget_all(s);
    }
    unlock(s);
}

/* ---- a run --------------------------------------------------------------------------- */

/* Releases the pages of a group that have left its window, before a run of `tokens` tokens. Keeps
 * those of as many positions as a chunk has, because a truncated sequence may need them. */
static void
drop_unseen(struct xm_kv_sequence *s, uint32_t group, uint64_t tokens)
{
    const struct xm_kv_group *g = &s->pool->groups[group];
    struct blocks *b = &s->blocks[group];
    const uint64_t end = s->past + tokens, most = g->window + s->pool->chunk;
    uint64_t keep = first_seen(g, s->past), n = 0;
    if (keep > (end > most ? end - most : 0))
        keep = end > most ? end - most : 0;
    while (g->window && n < b->n &&
           ((uint64_t)b->first + n + 1) * s->pool->page_tokens <= keep)
        xm_kv_release(s->pool, group, b->words[n++]);
    if (n == 0)
        return;
    memmove(b->words, b->words + n, (b->n - n) * sizeof(*b->words));
    b->first += (uint32_t)n;
    b->n -= (uint32_t)n;
}

static enum xm_status
copy_page(struct xm_kv_pool *pool, uint32_t group, int32_t from, int32_t to,
          struct xm_queue *q, struct xm_error *err)
{
    for (uint32_t i = 0; i < pool->n_layers; i++) {
        const struct xm_kv_page page = {.bytes = pool->layer_page[i]};
        if (pool->group_of[i] == group)
            XM_TRY(xm_attention_copy_page(pool->slabs + (size_t)i * XM_KV_SLABS, &page,
                                          from, to, q, err));
    }
    return XM_OK;
}

/* Returns the word of the last page if it is partly filled, so that the run writes to it; NULL: the
 * run writes to new pages only. */
static int32_t *
partly_filled(struct xm_kv_sequence *s, uint32_t group)
{
    struct blocks *b = &s->blocks[group];
    return s->past % s->pool->page_tokens
               ? &b->words[s->past / s->pool->page_tokens - b->first]
               : NULL;
}

/* Replaces the last page by a copy if the run writes to it and other sequences use it. */
static enum xm_status
own_last_page(struct xm_kv_sequence *s, uint32_t group, struct xm_queue *q,
              struct xm_error *err)
{
    struct xm_kv_pool *pool = s->pool;
    struct blocks *b = &s->blocks[group];
    int32_t *word = partly_filled(s, group), copy;
    if (!word || xm_kv_page_of(&pool->groups[group], *word)->users == 1)
        return XM_OK;
    XM_TRY(xm_kv_take(pool, group, &copy, err));
    enum xm_status status = copy_page(pool, group, *word, copy, q, err);
    if (status != XM_OK) {
        xm_kv_release(pool, group, copy);
        return status;
    }
    /* The page may be a copy that an earlier reservation made: its original is not needed now. */
    xm_kv_release(pool, group, b->replaced);
    b->replaced = *word;
    *word = copy;
    return XM_OK;
}

static enum xm_status
extend(struct xm_kv_sequence *s, uint32_t group, uint64_t tokens, struct xm_queue *q,
       struct xm_error *err)
{
    struct blocks *b = &s->blocks[group];
    const uint64_t need = pages_of(s->pool, s->past + s->pending + tokens);
    drop_unseen(s, group, tokens);
    if (b->n == 0) /* a new sequence, or all pages have left the window */
        b->first = (uint32_t)(s->past / s->pool->page_tokens);
    if (!room_for_pages(b, need - b->first))
        return xm_no_memory(err, "%" PRIu64 " page numbers", need - b->first);
    xm_kv_expect_pages(s->pool, group, need - b->first - b->n);
    XM_TRY(own_last_page(s, group, q, err));
    while (b->first + (uint64_t)b->n < need) {
        XM_TRY(xm_kv_take(s->pool, group, &b->words[b->n], err));
        b->n++;
    }
    return XM_OK;
}

/* Removes the last page from the prefix index if the run writes to it. */
static void
forget_last_page(struct xm_kv_sequence *s, uint32_t group)
{
    const int32_t *word = partly_filled(s, group);
    if (word)
        xm_kv_forget(s->pool, group, *word);
}

/* Releases all reserved pages but those of the first `pending` reserved positions. If `pending` is
 * 0, also undoes the copy of the last page. */
static void
cancel_behind(struct xm_kv_sequence *s, uint64_t pending)
{
    const uint64_t held = pages_of(s->pool, s->past + pending);
    for (uint32_t g = 0; g < s->pool->n_groups; g++) {
        struct blocks *b = &s->blocks[g];
        shorten(s, g, held);
        if (b->replaced == XM_KV_NO_PAGE || pending)
            continue;
        int32_t *word = &b->words[s->past / s->pool->page_tokens - b->first];
        xm_kv_release(s->pool, g, *word);
        *word = b->replaced;
        b->replaced = XM_KV_NO_PAGE;
    }
    s->pending = pending;
}

enum xm_status
xm_kv_sequence_reserve(struct xm_kv_sequence *s, uint64_t tokens, struct xm_queue *q,
                       struct xm_error *err)
{
    const uint64_t end = s->past + s->pending;
    if (tokens > INT32_MAX || end > INT32_MAX - tokens)
        return xm_fail(err, XM_INVALID,
                       "a sequence of %" PRIu64 " positions cannot grow by %" PRIu64
                       ": at most 2^31 - 1 positions are supported",
                       end, tokens);
    enum xm_status status = XM_OK;
    lock(s);
    for (uint32_t g = 0; g < s->pool->n_groups && status == XM_OK; g++)
        status = extend(s, g, tokens, q, err);
    /* after the last step that may fail: a failed reservation must not forget a prefix */
    for (uint32_t g = 0; g < s->pool->n_groups && status == XM_OK; g++)
        forget_last_page(s, g);
    if (status == XM_OK)
        s->pending += tokens;
    else
        cancel_behind(s, s->pending);
    unlock(s);
    return status;
}

static enum xm_status
take_pages(struct xm_kv_sequence *s, uint32_t group, uint64_t pages, struct xm_error *err)
{
    struct xm_kv_pool *pool = s->pool;
    struct blocks *b = &s->blocks[group];
    const uint64_t seen = first_seen(&pool->groups[group], pages * pool->page_tokens);
    const uint64_t first = seen / pool->page_tokens;
    if (!room_for_pages(b, pages - first))
        return xm_no_memory(err, "%" PRIu64 " page numbers", pages - first);
    b->first = (uint32_t)first;
    xm_kv_expect_pages(pool, group, pages - first);
    for (; b->n < pages - first; b->n++)
        XM_TRY(xm_kv_take(pool, group, &b->words[b->n], err));
    return XM_OK;
}

enum xm_status
xm_kv_sequence_reserve_pages(struct xm_kv_sequence *s, uint64_t pages,
                             struct xm_error *err)
{
    enum xm_status status = XM_OK;
    if (pages > INT32_MAX / s->pool->page_tokens)
        return xm_fail(err, XM_INVALID,
                       "a sequence of %" PRIu64
                       " pages is too long: at most 2^31 - 1 positions are supported",
                       pages);
    lock(s);
    for (uint32_t g = 0; g < s->pool->n_groups && status == XM_OK; g++)
        status = take_pages(s, g, pages, err);
    if (status == XM_OK)
        s->pending = pages * s->pool->page_tokens;
    else
        cancel_behind(s, 0);
    unlock(s);
    return status;
}

void
xm_kv_sequence_cancel(struct xm_kv_sequence *s)
{
    lock(s);
    cancel_behind(s, 0);
    unlock(s);
}

/* ---- what the pages hold --------------------------------------------------------------- */

static void
remember(struct xm_kv_sequence *s, const int32_t *ids, uint64_t n)
{
    if (n == 0)
        return;
    s->is_known = s->is_known && ids && room_for_ids(s, s->past + n);
    if (s->is_known)
        memcpy(s->ids + s->past, ids, n * sizeof(*ids));
}

/* Finds or adds the prefix index's node for full page i, and enters the sequence's page i of each
 * group in which the node has no page yet. Returns the node's serial; 0: no memory. */
static uint64_t
publish(struct xm_kv_sequence *s, uint64_t i)
{
    struct xm_kv_pool *pool = s->pool;
    const uint64_t parent = i ? s->serials[i - 1] : 0;
    const int32_t *ids = s->ids + i * pool->page_tokens;
    uint32_t node = xm_kv_prefix_find(&pool->prefixes, parent, ids);
    if (!node)
        node = xm_kv_prefix_add(&pool->prefixes, parent, ids);
    for (uint32_t g = 0; node && g < pool->n_groups; g++) {
        const struct blocks *b = &s->blocks[g];
        int32_t *word = &xm_kv_prefix_words(&pool->prefixes, node)[g];
        if (i < b->first || *word >= 0)
            continue;
        struct xm_kv_page_state *page =
            xm_kv_page_of(&pool->groups[g], b->words[i - b->first]);
        if (page->node)
            continue;
        *word = b->words[i - b->first];
        page->node = node;
    }
    return node ? pool->prefixes.nodes[node].serial : 0;
}

uint64_t
xm_kv_sequence_pending(const struct xm_kv_sequence *s)
{
    return s->pending;
}

void
xm_kv_sequence_commit(struct xm_kv_sequence *s, const int32_t *ids)
{
    xm_kv_sequence_commit_first(s, s->pending, ids);
}

void
xm_kv_sequence_commit_first(struct xm_kv_sequence *s, uint64_t n, const int32_t *ids)
{
    lock(s);
    for (uint32_t g = 0; g < s->pool->n_groups; g++) {
        xm_kv_release(s->pool, g, s->blocks[g].replaced);
        s->blocks[g].replaced = XM_KV_NO_PAGE;
    }
    remember(s, ids, n);
    s->past += n;
    s->pending -= n;
    while (s->is_known && s->n_serials < s->past / s->pool->page_tokens) {
        const uint64_t serial = publish(s, s->n_serials);
        s->is_known = serial != 0;
        s->serials[s->n_serials++] = serial;
    }
    unlock(s);
}

/* ---- a beginning that others have computed ----------------------------------------------- */

/* Returns whether the nodes have all pages of a group that a token behind the first `pages` pages
 * sees. */
static bool
has_window(const struct xm_kv_pool *pool, uint32_t group, const uint32_t *nodes,
           uint64_t pages)
{
    const struct xm_kv_group *g = &pool->groups[group];
    for (uint64_t i = first_seen(g, pages * pool->page_tokens) / pool->page_tokens;
         i < pages; i++) {
        if (xm_kv_prefix_words(&pool->prefixes, nodes[i])[group] < 0)
            return false;
    }
    return true;
}

static bool
has_all(const struct xm_kv_pool *pool, const uint32_t *nodes, uint64_t pages)
{
    bool has = true;
    for (uint32_t g = 0; g < pool->n_groups && has; g++)
        has = has_window(pool, g, nodes, pages);
    return has;
}

/* Makes the empty sequence s share the pages of nodes[pages], which cache these tokens. */
static void
take_over(struct xm_kv_sequence *s, const int32_t *tokens, const uint32_t *nodes,
          uint64_t pages)
{
    struct xm_kv_pool *pool = s->pool;
    for (uint32_t g = 0; g < pool->n_groups; g++) {
        struct blocks *b = &s->blocks[g];
        uint64_t i =
            first_seen(&pool->groups[g], pages * pool->page_tokens) / pool->page_tokens;
        b->first = (uint32_t)i;
        for (; i < pages; i++) {
            const int32_t word = xm_kv_prefix_words(&pool->prefixes, nodes[i])[g];
            xm_kv_share(pool, g, word);
            b->words[b->n++] = word;
        }
    }
    for (uint64_t i = 0; i < pages; i++)
        s->serials[i] = pool->prefixes.nodes[nodes[i]].serial;
    s->n_serials = pages;
    s->past = pages * pool->page_tokens;
    memcpy(s->ids, tokens, s->past * sizeof(*tokens));
}

/* Sets nodes[] to the nodes of the longest prefix of full pages that the index has, at most `pages`
 * pages; returns their number. */
static uint64_t
walk(const struct xm_kv_pool *pool, const int32_t *tokens, uint64_t pages,
     uint32_t *nodes)
{
    uint64_t parent = 0, n = 0;
    for (; n < pages; n++) {
        nodes[n] =
            xm_kv_prefix_find(&pool->prefixes, parent, tokens + n * pool->page_tokens);
        if (!nodes[n])
            break;
        parent = pool->prefixes.nodes[nodes[n]].serial;
    }
    return n;
}

enum xm_status
xm_kv_sequence_match(struct xm_kv_sequence *s, const int32_t *tokens, uint64_t n,
                     struct xm_error *err)
{
    struct xm_kv_pool *pool = s->pool;
    uint64_t pages = n ? (n - 1) / pool->page_tokens : 0;
    if (s->past || pages == 0)
        return XM_OK;
    uint32_t *nodes = xm_malloc(pages * sizeof(*nodes));
    bool fits = nodes && room_for_ids(s, pages * pool->page_tokens);
    for (uint32_t g = 0; g < pool->n_groups; g++)
        fits = fits && room_for_pages(&s->blocks[g], pages);
    if (!fits) {
        xm_free(nodes);
        return xm_no_memory(err, "a sequence's pages");
    }
    lock(s);
    pages = walk(pool, tokens, pages, nodes);
    while (pages && !has_all(pool, nodes, pages))
        pages--;
    if (pages)
        take_over(s, tokens, nodes, pages);
    unlock(s);
    xm_free(nodes);
    return XM_OK;
}
