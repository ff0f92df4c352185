/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of compiled models and requests.
 */
#ifndef XM_PLUGIN_STATS_H
#define XM_PLUGIN_STATS_H

#include "runtime/engine.h"

/* Of a compiled model; memory and builds are of its device's engine. */
struct xm_compiled_stats {
    struct xm_memory_stats memory;
    struct xm_build_stats builds;
    uint64_t weight_bytes;
    uint64_t host_weight_bytes; /* of them: experts that stay in host memory */
    /* Of those that kernels read in the mapped file: what is still being brought to memory, while
     * runs go on. */
    uint64_t weight_bytes_to_come;
    /* Pages of the KV cache, those that sequences use, and free ones that a prompt can reuse. */
    uint64_t kv_pages, kv_pages_used, kv_pages_cached;
};

struct xm_expert_cache_stats {
    uint64_t bytes;         /* of device memory, slots and tables               */
    uint64_t layers, slots; /* with a cache; in all of them together     */
    uint64_t hits, misses, fetched_bytes; /* of all runs so far           */
};

/* Is told that `done` of the `all` tokens of a run are done. */
typedef void (*xm_tokens_fn)(void *ctx, uint64_t done, uint64_t all);

/* What a request holds, and what the last run cost. */
struct xm_request_stats {
    uint64_t activation_bytes, scratch_bytes, io_bytes;
    uint64_t kv_bytes; /* of the pool, which all requests of the compiled model share */
    uint64_t kernels, waits; /* of the last run */
    /* Of all runs: bytes of weights read, dense ones once a step and experts once a row (at most
     * all of them once a step), and multiply-adds with a weight. */
    uint64_t weight_bytes, multiply_adds;
};

#endif
