/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of benchmark_app's latencies, and how many iterations there are.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_STATS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Milliseconds. */
struct xm_benchmark_latency {
    double percentile, average, min, max;
};

/* Of n latencies, at least one, which are sorted. The percentile is one of them: the first that
 * is no smaller than `percent` of all, so that 50 is the median, the lower one of two. */
struct xm_benchmark_latency xm_benchmark_latency_of(double *ms, size_t n,
                                                    uint64_t percent);

/* Up to a multiple of `round`, which is not 0. */
uint64_t xm_benchmark_whole_rounds(uint64_t niter, uint64_t round);

#ifdef __cplusplus
}
#endif
#endif
