/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache's pages, for all requests of a program.
 *
 * Layers with equal needs are a group: those that keep every position, and those of each window.
 * A page of a group holds `page_tokens` positions of all its layers; its word (slab and page of
 * the slab, as attention's BLOCK_INDICES have it) is the same in all of them. Pages are counted:
 * sequences share those of a common beginning. What nobody uses any more keeps its contents until
 * it is taken anew, longest free first, so that a prompt may find its beginning there
 * (kv_prefix.h).
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

/* What a layer's cache needs. */
struct xm_kv_need {
    uint64_t page_bytes; /* > 0 */
    uint64_t window;     /* positions that a token sees, itself included; 0: all */
};

struct xm_kv_pool_desc {
    struct xm_engine *engine;
    uint32_t page_tokens;
    const struct xm_kv_need *layers;
    uint32_t n_layers;
    /* tokens of a sequence in one run, at most: windows keep as many more */
    uint64_t chunk;
    uint64_t budget; /* bytes */
};

enum xm_status xm_kv_pool_create(const struct xm_kv_pool_desc *desc,
                                 struct xm_kv_pool **out, struct xm_error *err);
/* All its sequences are gone. NULL is allowed. */
void xm_kv_pool_destroy(struct xm_kv_pool *pool);

/* So many sequences of so many positions will come beside those there are: the next slab has room
 * for them, if the budget has. The first few slabs have room for no more. */
void xm_kv_pool_expect(struct xm_kv_pool *pool, uint64_t sequences, uint64_t positions);
/* The same for sequences of their own lengths. */
void xm_kv_pool_expect_each(struct xm_kv_pool *pool, const uint64_t *positions, size_t n);

/* A run that was announced has failed: its positions do not come, and slabs grow as if nobody had
 * announced any. Sequences that others announced lose that, too; they take more slabs then. */
void xm_kv_pool_expect_none(struct xm_kv_pool *pool);

/* Gives all memory back, and forgets what was expected; nothing happens while pages are used. */
void xm_kv_pool_trim(struct xm_kv_pool *pool);

uint32_t xm_kv_pool_groups(const struct xm_kv_pool *pool);
uint32_t xm_kv_pool_group_of(const struct xm_kv_pool *pool, uint32_t layer);
/* The slabs of a layer, NULL where there is none (yet); borrowed. */
void xm_kv_pool_slabs(struct xm_kv_pool *pool, uint32_t layer, struct xm_buffer **out);

/* The state of a group. A page is used by a sequence, or free; free ones may have contents. */
struct xm_kv_group_stats {
    uint64_t window; /* 0: none */
    uint32_t layers;
    uint64_t page_bytes; /* of all its layers */
    uint64_t pages, used, cached;
};
void xm_kv_pool_stats(struct xm_kv_pool *pool, uint32_t group,
                      struct xm_kv_group_stats *out);
uint64_t xm_kv_pool_bytes(struct xm_kv_pool *pool); /* of all slabs */
/* Pages of a group that a sequence of so many positions uses, at most. */
uint64_t xm_kv_pool_pages_for(const struct xm_kv_pool *pool, uint32_t group,
                              uint64_t positions);

#ifdef __cplusplus
}
#endif
#endif
