/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache's pages, for all requests of a program.
 *
 * Layers are divided into groups: one group of the layers that keep every position, and one for
 * each size of sliding window. A page of a group holds `page_tokens` positions of all its layers;
 * the page's word (slab and page of the slab, as in attention's BLOCK_INDICES) is the same in all
 * of them. Pages have a count of users, because sequences share the pages of a common prefix. A
 * free page keeps its contents until it is taken again, so that a later prompt can reuse its prefix
 * (kv_prefix.h). Pages without such contents are taken first, then the page that has been free
 * longest.
 *
 * Memory is allocated in slabs that never move. Only all slabs together can be freed
 * (xm_kv_pool_trim). The bytes of all slabs stay within the budget. Any thread may call any
 * function: a lock guards the pool.
 */
#ifndef XM_PLUGIN_KV_KV_POOL_H
#define XM_PLUGIN_KV_KV_POOL_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_pool;

/* The KV cache of one layer. */
struct xm_kv_need {
    uint64_t page_bytes; /* > 0 */
    uint64_t window;     /* most positions that a token sees, itself included; 0: all */
};

struct xm_kv_pool_desc {
    struct xm_engine *engine;
    uint32_t page_tokens;
    const struct xm_kv_need *layers;
    uint32_t n_layers;
    /* most tokens of a sequence in one run; layers with a sliding window keep the window's
     * positions and as many more */
    uint64_t chunk;
    uint64_t budget; /* most bytes of all slabs */
};

/* Creates an empty pool, which references the engine; slabs are allocated when pages are taken.
 * *desc need not outlive the call. */
enum xm_status xm_kv_pool_create(const struct xm_kv_pool_desc *desc,
                                 struct xm_kv_pool **out, struct xm_error *err);
/* Frees the pool; its sequences must have been destroyed before. NULL is allowed. */
void xm_kv_pool_destroy(struct xm_kv_pool *pool);

/* Announces `sequences` new sequences of `positions` positions each, so that the next slab is large
 * enough for all of them, within the budget. The first four slabs of a group are then no larger
 * than the announced pages. */
void xm_kv_pool_expect(struct xm_kv_pool *pool, uint64_t sequences, uint64_t positions);
/* Announces n new sequences of positions[i] positions, as xm_kv_pool_expect does. */
void xm_kv_pool_expect_each(struct xm_kv_pool *pool, const uint64_t *positions, size_t n);

/* Returns whether n new sequences of positions[i] positions fit beside the pages in use: into the
 * free pages and the slabs that the budget still allows. The device may have less memory than the
 * budget. */
bool xm_kv_pool_has_room(struct xm_kv_pool *pool, const uint64_t *positions, size_t n);

/* Withdraws all announcements, after an announced run has failed. Announcements of other requests
 * are withdrawn, too; their sequences then only need more slabs. */
void xm_kv_pool_expect_none(struct xm_kv_pool *pool);

/* Frees all slabs and withdraws all announcements; does nothing while a page is used. */
void xm_kv_pool_trim(struct xm_kv_pool *pool);

/* The number of groups of layers, and the group of a layer. */
uint32_t xm_kv_pool_groups(const struct xm_kv_pool *pool);
uint32_t xm_kv_pool_group_of(const struct xm_kv_pool *pool, uint32_t layer);
/* Sets out[XM_KV_SLABS] to the slabs of a layer, NULL for slabs that do not exist yet. They are not
 * referenced for the caller. */
void xm_kv_pool_slabs(struct xm_kv_pool *pool, uint32_t layer, struct xm_buffer **out);

/* The state of a group of layers with the same window. A page is used by sequences or free; a free
 * page may still hold positions that a later prompt can reuse (`cached`). */
struct xm_kv_group_stats {
    uint64_t window; /* 0: none */
    uint32_t layers;
    uint64_t page_bytes; /* of all its layers */
    uint64_t pages, used, cached;
};
void xm_kv_pool_stats(struct xm_kv_pool *pool, uint32_t group,
                      struct xm_kv_group_stats *out);
uint64_t xm_kv_pool_bytes(struct xm_kv_pool *pool); /* of all slabs */
/* The most pages of a group that a sequence of this many positions uses. */
uint64_t xm_kv_pool_pages_for(const struct xm_kv_pool *pool, uint32_t group,
                              uint64_t positions);

#ifdef __cplusplus
}
#endif
#endif
