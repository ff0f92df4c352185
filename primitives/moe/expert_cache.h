/* SPDX-License-Identifier: Apache-2.0
 *
 * A cache of experts: all experts of one layer stay in host memory; device memory has slots for
 * some of them.
 *
 *     host     gate [E,..]  up [E,..]  down [E,..]      every tensor with its scales, zero points
 *                 │ the missing ones are fetched        and biases, an entry an expert
 *     device   gate [S,..]  up [S,..]  down [S,..]      the same, an entry a slot
 *
 *   moe_cache_lookup   routed ids -> slots; a missing expert gets the least recently used slot;
 *                      hits and misses are counted
 *   moe_cache_fetch    copies the missing experts
 *
 * Then the kernels for few tokens read the slots, with slot numbers in place of expert ids. Both
 * steps are enqueued like any other: the host neither waits nor reads the routed ids. Results do
 * not depend on the cache, because a slot has the same bytes as its expert. Every use changes the
 * tables, so only one queue at a time may use a cache.
 */
#ifndef XM_PRIMITIVES_MOE_EXPERT_CACHE_H
#define XM_PRIMITIVES_MOE_EXPERT_CACHE_H

#include "primitives/moe/moe.h"
#include "primitives/stage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Data, scales, zero points and biases of three weights, and the experts' factor. */
enum { XM_EXPERT_PARTS = 13 };
struct xm_expert_part {
    /* host memory, one entry for each expert; borrowed */
    const struct xm_buffer *from;
    struct xm_buffer **to;  /* set to the view of all slots' entries */
    uint64_t bytes, offset; /* of an entry; of slot 0 in `memory` */
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
    /* the slots as a set of experts, which kernels read */
    struct xm_expert_rows rows;
    /* the weights of `rows`: the slots' buffers, the experts' strides */
    struct xm_device_weight gate, up, down;
    /* one buffer for tables and slots, which are views of it */
    struct xm_buffer *memory;
    struct xm_buffer *table[XM_EXPERT_N_TABLES];
    struct xm_stage lookup, fetch;
};

struct xm_expert_counts {
    uint64_t hits, misses, fetched_bytes;
};

/* Creates a cache with as many slots as fit into `bytes` together with the tables, at most one for
 * each expert. *out is NULL, with XM_OK, if that is fewer than top_k slots, if an expert is not
 * whole bytes, or if a weight is a view of a part of the stored one. `most_ids`: the most routed
 * ids of a call. `queue` writes the tables. */
enum xm_status xm_expert_cache_create(struct xm_engine *engine,
                                      const struct xm_expert_rows *experts,
                                      uint64_t top_k, uint64_t most_ids, uint64_t bytes,
                                      struct xm_queue *queue,
                                      struct xm_expert_cache **out, struct xm_error *err);
void xm_expert_cache_destroy(struct xm_expert_cache *c); /* NULL is allowed */
/* Returns the bytes of one slot. */
uint64_t xm_expert_cache_slot_bytes(const struct xm_expert_cache *c);

/* Enqueues the emptying of all slots. The counts of hits and misses stay. */
enum xm_status xm_expert_cache_clear(const struct xm_expert_cache *c,
                                     struct xm_queue *queue, struct xm_error *err);
/* Returns whether the experts of any n_ids routed ids fit into the slots at once. */
bool xm_expert_cache_holds(const struct xm_expert_cache *c, uint64_t n_ids);
/* Enqueues both steps for ids[n_ids] i32; afterwards table[XM_EXPERT_SLOT_IDS] has the slot of each
 * id. After a failure call xm_expert_cache_clear: a slot may not hold the expert that the tables
 * say. */
enum xm_status xm_expert_cache_fill(const struct xm_expert_cache *c,
                                    const struct xm_buffer *ids, uint64_t n_ids,
                                    struct xm_queue *queue, struct xm_error *err);
/* Reads how many ids so far found their expert in a slot (hits), and how many experts were fetched
 * (misses; an expert that is missing for two ids of a call counts once). Waits. */
enum xm_status xm_expert_cache_read_counts(const struct xm_expert_cache *c,
                                           struct xm_queue *queue,
                                           struct xm_expert_counts *out,
                                           struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
