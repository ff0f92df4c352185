/* SPDX-License-Identifier: Apache-2.0
 *
 * A cache of experts: one layer's experts stay in host memory, slots for some of them are in the
 * device's.
 *
 *     host     gate [E,..]  up [E,..]  down [E,..]      every tensor with its scales, zero points
 *                 │ the missing ones are fetched        and biases, an entry an expert
 *     device   gate [S,..]  up [S,..]  down [S,..]      the same, an entry a slot
 *
 *   moe_cache_lookup   routed ids -> slots; an expert that has none gets the one that has not been
 *                      used for the longest time; hits and misses are counted
 *   moe_cache_fetch    copies the missing experts
 *
 * Then the kernels for few tokens run on the slots, with slots in place of ids. Both steps are
 * enqueued like any other: the host neither waits nor reads what was routed. The bytes are the
 * same in both places, and so are the results. Every use changes the tables: one queue at a time.
 */
#ifndef XM_PRIMITIVES_MOE_EXPERT_CACHE_H
#define XM_PRIMITIVES_MOE_EXPERT_CACHE_H

#include "primitives/moe/moe.h"
#include "primitives/stage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Data, scales, zero points and biases of three weights, and a factor. */
enum { XM_EXPERT_PARTS = 13 };
struct xm_expert_part {
    const struct xm_buffer *from; /* entries by expert, borrowed           */
    struct xm_buffer **to;        /* where the view of the slots goes      */
    uint64_t bytes, offset;       /* of an entry; of slot 0 in the memory  */
};

enum xm_expert_table { /* kernels/cl/moe_cache_lookup_ref.cl */
                       XM_EXPERT_SLOT_OF,
                       XM_EXPERT_IN,
                       XM_EXPERT_LAST_USE,
                       XM_EXPERT_COUNTS,
                       XM_EXPERT_SLOT_IDS,
                       XM_EXPERT_MOVES,
                       XM_EXPERT_PART_SIZES, /* kernels/cl/include/expert_parts.h */
                       XM_EXPERT_N_TABLES
};

struct xm_expert_cache {
    /* borrowed, as are the experts: they must outlive the cache */
    struct xm_engine *engine;
    uint64_t experts, slots, most_ids;
    struct xm_expert_part part[XM_EXPERT_PARTS];
    uint32_t n_parts;
    struct xm_expert_rows rows;             /* by slot: what the kernels read     */
    struct xm_device_weight gate, up, down; /* of rows: buffers, and the experts' steps */
    struct xm_buffer *memory;               /* of slots and tables, which are views */
    struct xm_buffer *table[XM_EXPERT_N_TABLES];
    struct xm_stage lookup, fetch;
};

struct xm_expert_counts {
    uint64_t hits, misses, fetched_bytes;
};

/* A cache of as many slots as `bytes` hold together with the tables, at most one an expert. *out
 * is NULL when they would be fewer than top_k, or when an expert is not whole bytes or a part of
 * what is stored. `most_ids`: routed ids of the largest call. `queue` writes the tables. */
enum xm_status xm_expert_cache_create(struct xm_engine *engine,
                                      const struct xm_expert_rows *experts,
                                      uint64_t top_k, uint64_t most_ids, uint64_t bytes,
                                      struct xm_queue *queue,
                                      struct xm_expert_cache **out, struct xm_error *err);
void xm_expert_cache_destroy(struct xm_expert_cache *c); /* NULL is allowed */
/* Of one expert. */
uint64_t xm_expert_cache_slot_bytes(const struct xm_expert_cache *c);

/* Enqueues: all slots empty. The counts stay. */
enum xm_status xm_expert_cache_clear(const struct xm_expert_cache *c,
                                     struct xm_queue *queue, struct xm_error *err);
/* Whether all experts that so many routed ids may name have room at once. */
bool xm_expert_cache_holds(const struct xm_expert_cache *c, uint64_t n_ids);
/* Enqueues both steps for ids[n_ids] i32; afterwards table[XM_EXPERT_SLOT_IDS] has the slots.
 * After a failure the cache must be cleared: a slot may not hold what the tables say. */
enum xm_status xm_expert_cache_fill(const struct xm_expert_cache *c,
                                    const struct xm_buffer *ids, uint64_t n_ids,
                                    struct xm_queue *queue, struct xm_error *err);
/* Ids that found their expert there, experts fetched (an id that comes twice in a call: once)
 * so far. Waits. */
enum xm_status xm_expert_cache_read_counts(const struct xm_expert_cache *c,
                                           struct xm_queue *queue,
                                           struct xm_expert_counts *out,
                                           struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
