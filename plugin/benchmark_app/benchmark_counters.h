/* SPDX-License-Identifier: Apache-2.0
 *
 * The times of a model's layers ("performance counters") in the last inference of each request.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_COUNTERS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_COUNTERS_H

#include "plugin/benchmark_app/benchmark_run.h"

/* Prints the counters for -pc and -pcsort, writes the report files of -report_type (with -pcsort, a
 * sorted one), and prints their paths. Warns if the device does not measure its steps. */
enum xm_status xm_benchmark_counters_say(const struct xm_benchmark_model *m,
                                         const struct xm_benchmark_run *r,
                                         const struct xm_benchmark_args *a,
                                         struct xm_error *err);

#endif
