/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kv/kv_file.h"

#include <inttypes.h>
#include <string.h>

#include "plugin/kv/kv_pages.h"
#include "runtime/util/memory.h"

enum {
    PIECE = 1 << 20
}; /* bytes that are read from the device at once, or one page if a page is larger */

static uint64_t
whole_pages(const struct xm_kv_sequence *s, const struct xm_kv_pool *pool)
{
    return xm_kv_sequence_past(s) / pool->page_tokens;
}

/* Returns how many of the n pages, from words[0] on, are adjacent in one slab, so that they can be
 * read or written at once. */
static uint64_t
count_adjacent(const int32_t *words, uint64_t n)
{
    const uint32_t slab = (uint32_t)words[0] >> XM_KV_SLAB_SHIFT;
    uint64_t k = 1;
    while (k < n && (uint32_t)words[k] == (uint32_t)words[0] + k &&
           (uint32_t)words[k] >> XM_KV_SLAB_SHIFT == slab)
        k++;
    return k;
}

static struct xm_buffer *
find_slab(const struct xm_kv_pool *pool, uint32_t layer, int32_t word, uint64_t *offset)
{
    const uint32_t mask = (1u << XM_KV_SLAB_SHIFT) - 1;
    *offset = ((uint32_t)word & mask) * pool->layer_page[layer];
    return pool
        ->slabs[(size_t)layer * XM_KV_SLABS + ((uint32_t)word >> XM_KV_SLAB_SHIFT)];
}

/* ---- writing -------------------------------------------------------------------------- */

uint64_t
xm_kv_file_bytes(const struct xm_kv_sequence *s)
{
    const struct xm_kv_pool *pool = xm_kv_sequence_pool(s);
    const uint64_t pages = whole_pages(s, pool);
    uint64_t bytes = sizeof(struct xm_kv_file_head);
    for (uint32_t g = 0; g < pool->n_groups; g++) {
        uint32_t first, n;
        xm_kv_sequence_pages(s, g, &first, &n);
        bytes += sizeof(struct xm_kv_file_group) +
                 (pages > first ? pages - first : 0) * pool->groups[g].page_bytes;
    }
    return bytes;
}

uint64_t
xm_kv_file_least(const struct xm_kv_sequence *s)
{
    const struct xm_kv_pool *pool = xm_kv_sequence_pool(s);
    const uint64_t page = pool->page_tokens;
    uint64_t least = 0;
    for (uint32_t g = 0; g < pool->n_groups; g++) {
        uint32_t first, n;
        xm_kv_sequence_pages(s, g, &first, &n);
        /* A token behind `positions` sees the window - 1 positions before it; the first of them
         * must not lie before page `first`. */
        const uint64_t seen = first ? pool->groups[g].window - 1 : 0;
        const uint64_t positions = seen ? first * page + seen : 0;
        const uint64_t whole = (positions + page - 1) / page * page;
        least = whole > least ? whole : least;
    }
    return least;
}

static enum xm_status
write_head(const struct xm_kv_sequence *s, const struct xm_kv_sink *to,
           struct xm_error *err)
{
    const struct xm_kv_pool *pool = xm_kv_sequence_pool(s);
    const struct xm_kv_file_head head = {pool->n_groups, pool->page_tokens,
                                         whole_pages(s, pool)};
    XM_TRY(to->write(to->ctx, &head, sizeof(head), err));
    for (uint32_t g = 0; g < pool->n_groups; g++) {
        uint32_t first, n;
        xm_kv_sequence_pages(s, g, &first, &n);
        const struct xm_kv_file_group group = {first < head.pages ? first : head.pages,
                                               pool->groups[g].page_bytes};
        XM_TRY(to->write(to->ctx, &group, sizeof(group), err));
    }
    return XM_OK;
}

struct writing {
    const struct xm_kv_sink *to;
    struct xm_queue *queue;
    uint8_t *piece; /* [piece_bytes] */
    uint64_t piece_bytes;
};

static enum xm_status
write_layer(const struct writing *w, const struct xm_kv_pool *pool, uint32_t layer,
            const int32_t *words, uint64_t n, struct xm_error *err)
{
    const uint64_t page = pool->layer_page[layer], most = w->piece_bytes / page;
    for (uint64_t i = 0, k; i < n; i += k) {
        uint64_t offset;
        const struct xm_buffer *slab = find_slab(pool, layer, words[i], &offset);
        k = count_adjacent(words + i, n - i < most ? n - i : most);
        XM_TRY(xm_queue_read(w->queue, slab, offset, w->piece, k * page, err));
        XM_TRY(w->to->write(w->to->ctx, w->piece, k * page, err));
    }
    return XM_OK;
}

static enum xm_status
write_pages(const struct writing *w, const struct xm_kv_sequence *s, struct xm_error *err)
{
    const struct xm_kv_pool *pool = xm_kv_sequence_pool(s);
    const uint64_t pages = whole_pages(s, pool);
    for (uint32_t g = 0; g < pool->n_groups; g++) {
        uint32_t first, n;
        const int32_t *words = xm_kv_sequence_pages(s, g, &first, &n);
        for (uint32_t i = 0; i < pool->n_layers && first < pages; i++)
            if (pool->group_of[i] == g)
                XM_TRY(write_layer(w, pool, i, words, pages - first, err));
    }
    return XM_OK;
}

enum xm_status
xm_kv_file_write(const struct xm_kv_sequence *s, const struct xm_kv_sink *to,
                 struct xm_error *err)
{
    const struct xm_kv_pool *pool = xm_kv_sequence_pool(s);
    struct writing w = {.to = to, .piece_bytes = PIECE};
    for (uint32_t i = 0; i < pool->n_layers; i++)
        if (pool->layer_page[i] > w.piece_bytes)
            w.piece_bytes = pool->layer_page[i];
    XM_TRY(write_head(s, to, err));
    XM_TRY(xm_queue_create(pool->engine, &w.queue, err));
    w.piece = xm_malloc((size_t)w.piece_bytes);
    const enum xm_status status =
        w.piece ? write_pages(&w, s, err) : xm_no_memory(err, "pages of the KV cache");
    xm_free(w.piece);
    xm_queue_destroy(w.queue);
    return status;
}

/* ---- reading -------------------------------------------------------------------------- */

/* Bytes that xm_kv_file_write has written, and a copy of their head. */
struct reading {
    struct xm_kv_file_head head;
    const uint8_t *bytes;
    uint64_t n_bytes;
};

static struct xm_kv_file_group
group_of(const struct reading *r, uint32_t g)
{
    struct xm_kv_file_group group;
    memcpy(&group, r->bytes + sizeof(r->head) + g * sizeof(group), sizeof(group));
    return group;
}

static enum xm_status
check(struct reading *r, const struct xm_kv_pool *pool, struct xm_error *err)
{
    uint64_t need = sizeof(r->head) + pool->n_groups * sizeof(struct xm_kv_file_group);
    if (r->n_bytes >= need)
        memcpy(&r->head, r->bytes, sizeof(r->head));
    bool fits = r->n_bytes >= need && r->head.n_groups == pool->n_groups &&
                r->head.page_tokens == pool->page_tokens;
    for (uint32_t g = 0; g < pool->n_groups && fits; g++) {
        const struct xm_kv_file_group group = group_of(r, g);
        uint64_t bytes;
        fits = group.page_bytes == pool->groups[g].page_bytes &&
               group.first <= r->head.pages &&
               xm_mul_size(r->head.pages - group.first, group.page_bytes, &bytes) &&
               xm_add_size(need, bytes, &need);
    }
    return fits && need == r->n_bytes
               ? XM_OK
               : xm_fail(err, XM_INVALID, "the saved pages belong to another KV cache");
}

/* Returns whether the bytes have, for each group, all pages that sequence s has reserved for its
 * first `pages` pages. */
static bool
has_pages(const struct reading *r, const struct xm_kv_sequence *s, uint64_t pages)
{
    const struct xm_kv_pool *pool = xm_kv_sequence_pool(s);
    bool has = pages <= r->head.pages;
    for (uint32_t g = 0; g < pool->n_groups && has; g++) {
        uint32_t first, n;
        xm_kv_sequence_pages(s, g, &first, &n);
        has = n == 0 || group_of(r, g).first <= first;
    }
    return has;
}

/* Enqueues writes of n pages of a layer: page i is at bytes + i * the page's bytes and goes to
 * words[i]. */
static enum xm_status
read_layer(struct xm_queue *q, const struct xm_kv_pool *pool, uint32_t layer,
           const uint8_t *bytes, const int32_t *words, uint64_t n, struct xm_error *err)
{
    const uint64_t page = pool->layer_page[layer];
    for (uint64_t i = 0, k; i < n; i += k) {
        uint64_t offset;
        struct xm_buffer *slab = find_slab(pool, layer, words[i], &offset);
        k = count_adjacent(words + i, n - i);
        XM_TRY(xm_queue_write(q, slab, offset, bytes + i * page, k * page, err));
    }
    return XM_OK;
}

static enum xm_status
read_pages(const struct reading *r, const struct xm_kv_sequence *s, struct xm_queue *q,
           struct xm_error *err)
{
    const struct xm_kv_pool *pool = xm_kv_sequence_pool(s);
    uint64_t at = sizeof(r->head) + pool->n_groups * sizeof(struct xm_kv_file_group);
    for (uint32_t g = 0; g < pool->n_groups; g++) {
        const struct xm_kv_file_group group = group_of(r, g);
        uint32_t first, n;
        const int32_t *words = xm_kv_sequence_pages(s, g, &first, &n);
        for (uint32_t i = 0; i < pool->n_layers; i++) {
            const uint64_t page = pool->layer_page[i];
            if (pool->group_of[i] != g)
                continue;
            if (n > 0)
                XM_TRY(read_layer(q, pool, i,
                                  r->bytes + at + (first - group.first) * page, words, n,
                                  err));
            at += (r->head.pages - group.first) * page;
        }
    }
    return xm_queue_finish(q, err);
}

enum xm_status
xm_kv_file_read(struct xm_kv_sequence *s, const int32_t *ids, uint64_t n,
                const uint8_t *bytes, uint64_t n_bytes, struct xm_error *err)
{
    struct xm_kv_pool *pool = xm_kv_sequence_pool(s);
    const uint64_t pages = n / pool->page_tokens;
    struct reading r = {.bytes = bytes, .n_bytes = n_bytes};
    struct xm_queue *q = NULL;
    XM_TRY(check(&r, pool, err));
    if (!xm_kv_pool_has_room(pool, &n, 1)) /* before a slab is allocated in vain */
        return xm_fail(err, XM_NO_MEMORY,
                       "the KV cache has no room for %" PRIu64 " positions", n);
    XM_TRY(xm_kv_sequence_reserve_pages(s, pages, err));
    if (!has_pages(&r, s, pages)) {
        xm_kv_sequence_cancel(s);
        return XM_OK;
    }
    enum xm_status status = xm_queue_create(pool->engine, &q, err);
    if (status == XM_OK)
        status = read_pages(&r, s, q, err);
    xm_queue_destroy(q);
    if (status == XM_OK)
        xm_kv_sequence_commit(s, ids);
    else
        xm_kv_sequence_cancel(s);
    return status;
}
