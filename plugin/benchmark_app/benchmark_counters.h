/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of a model's layers, of each request's last inference: -pc on standard output, and the
 * reports of counters.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_COUNTERS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_COUNTERS_H

#include "plugin/benchmark_app/benchmark_run.h"

/* What -pc, -pcsort and -report_type ask for, printed and into files; says where those are. A
 * warning where the device does not measure its steps. With -report_type -pcsort has a file. */
enum xm_status xm_benchmark_counters_say(const struct xm_benchmark_model *m,
                                         const struct xm_benchmark_run *r,
                                         const struct xm_benchmark_args *a,
                                         struct xm_error *err);

#endif
