/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache's pages, for all requests of a program.
 *
 * Layers with equal needs are a group: those that keep every position, and those of each window.
 * A page of a group holds `page_tokens` positions of all its layers; its word (slab and page of
 * the slab, as attention's BLOCK_INDICES have it) is the same in all of them. Pages have a count of
 * users: sequences share the pages of a common prefix. A free page keeps its contents until it is
 * taken again, longest free first, so that a later prompt may reuse its prefix (kv_prefix.h).
 *
 * Memory comes in slabs that never move, and is given back as a whole only (xm_kv_pool_trim);
 * together they stay within the budget. Any thread may call any function: a lock guards the pool.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_POOL_H
#define XM_PLUGIN_GPU_KV_KV_POOL_H

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
    /* most tokens of a sequence in one run; a sliding window keeps as many positions more */
    uint64_t chunk;
    uint64_t budget; /* most bytes of all slabs */
};

/* Creates an empty pool, which references the engine; slabs are allocated when pages are taken.
 * *desc need not outlive the call. */
enum xm_status xm_kv_pool_create(const struct xm_kv_pool_desc *desc,
                                 struct xm_kv_pool **out, struct xm_error *err);
/* All its sequences must have been destroyed. NULL is allowed. */
void xm_kv_pool_destroy(struct xm_kv_pool *pool);

/* Announces `sequences` new sequences of `positions` positions each, so that the next slab is large
 * enough for them, within the budget. The first few slabs are no larger than that. */
void xm_kv_pool_expect(struct xm_kv_pool *pool, uint64_t sequences, uint64_t positions);
/* The same for n sequences of positions[i] positions. */
void xm_kv_pool_expect_each(struct xm_kv_pool *pool, const uint64_t *positions, size_t n);

/* Whether the pages of n new sequences of positions[i] positions fit beside those in use: into free
 * pages, and slabs that the budget allows. The device may have less memory than the budget. */
bool xm_kv_pool_has_room(struct xm_kv_pool *pool, const uint64_t *positions, size_t n);

/* Withdraws all announcements, after an announced run has failed: slabs grow as without any. This
 * also concerns sequences announced by others, which then only need more slabs. */
void xm_kv_pool_expect_none(struct xm_kv_pool *pool);

/* Frees all slabs and withdraws all announcements; does nothing while pages are used. */
void xm_kv_pool_trim(struct xm_kv_pool *pool);

/* The number of groups of layers, and the group of a layer. */
uint32_t xm_kv_pool_groups(const struct xm_kv_pool *pool);
uint32_t xm_kv_pool_group_of(const struct xm_kv_pool *pool, uint32_t layer);
/* The slabs of a layer; NULL for slabs that do not exist yet. Not referenced for the caller. */
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
