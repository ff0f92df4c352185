/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of benchmark_app's latencies, and the rounding of its number of iterations.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_STATS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In milliseconds. */
struct xm_benchmark_latency {
    double percentile, average, min, max;
};

/* Statistics of n >= 1 latencies; sorts ms[n]. The percentile is the smallest latency that at least
 * `percent` % of all do not exceed: 50 is the median, the lower of two middle ones. */
struct xm_benchmark_latency xm_benchmark_latency_of(double *ms, size_t n,
                                                    uint64_t percent);

/* Rounds `niter` up to a multiple of `round`, which is not 0. */
uint64_t xm_benchmark_whole_rounds(uint64_t niter, uint64_t round);

#ifdef __cplusplus
}
#endif
#endif
