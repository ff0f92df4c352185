/* SPDX-License-Identifier: Apache-2.0
 *
 * The output lines of benchmark_app, all on standard output, in the form that programs which parse
 * OpenVINO's benchmark_app expect:
 *
 *     [Step 4/11] Reading model files
 *     [ INFO ] Read model took 12.34 ms
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_OUT_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_OUT_H

#include "plugin/benchmark_app/benchmark_stats.h"
#include "runtime/util/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prints the title of step 1 to 11, followed by `remark` in brackets unless NULL. */
void xm_benchmark_step(int number, const char *remark);
void xm_benchmark_info(const char *fmt, ...) XM_PRINTF(1, 2);
void xm_benchmark_warn(const char *fmt, ...) XM_PRINTF(1, 2);
void xm_benchmark_error(const char *fmt, ...) XM_PRINTF(1, 2);
/* Prints the four lines of latencies, in microseconds if the average is below one millisecond. The
 * column of labels is narrower for a group of shapes. */
enum xm_benchmark_latency_labels { XM_LATENCY_OF_ALL, XM_LATENCY_OF_GROUP };
void xm_benchmark_print_latency(const struct xm_benchmark_latency *l, uint64_t percent,
                                enum xm_benchmark_latency_labels labels);

#ifdef __cplusplus
}
#endif
#endif
