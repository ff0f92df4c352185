/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of compiled models and requests.
 */
#ifndef XM_PLUGIN_STATS_H
#define XM_PLUGIN_STATS_H

#include "runtime/engine.h"

/* Statistics of a compiled model. `memory` and `builds` are those of its device's engine. */
struct xm_compiled_stats {
    struct xm_memory_stats memory;
    struct xm_build_stats builds;
    uint64_t weight_bytes;
    uint64_t host_weight_bytes; /* the part of them in host memory: experts */
    /* Bytes of weights in the mapped file that are still being read into memory while runs
     * proceed. */
    uint64_t weight_bytes_to_come;
    /* Number of pages of the KV cache; pages that sequences use; free pages that a prompt can
     * reuse. */
    uint64_t kv_pages, kv_pages_used, kv_pages_cached;
};

struct xm_expert_cache_stats {
    uint64_t bytes;         /* device memory for slots and tables */
    uint64_t layers, slots; /* number of layers with a cache; slots of all of them */
    uint64_t hits, misses, fetched_bytes; /* sums over all runs so far */
};

/* Reports that `done` of the `all` tokens of a run are computed. */
typedef void (*xm_tokens_fn)(void *ctx, uint64_t done, uint64_t all);

/* The memory of a request, and the cost of its runs. */
struct xm_request_stats {
    uint64_t activation_bytes, scratch_bytes, io_bytes;
    /* the size of the pool, which all requests of the compiled model share */
    uint64_t kv_bytes;
    uint64_t kernels, waits; /* number of kernel launches and of waits in the last run */
    /* Sums over all runs. weight_bytes: dense weights count once a step, an expert's weights once
     * for each token that uses it, but at most all experts once a step. multiply_adds: with
     * weights. */
    uint64_t weight_bytes, multiply_adds;
};

#endif
