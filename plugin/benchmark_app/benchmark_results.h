/* SPDX-License-Identifier: Apache-2.0
 *
 * What came out of benchmark_app's run: its last lines, and the same as rows of the report.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RESULTS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RESULTS_H

#include "plugin/benchmark_app/benchmark_report.h"
#include "plugin/benchmark_app/benchmark_run.h"

/* What they are made of, and where they go. */
struct xm_benchmark_results {
    const struct xm_benchmark_args *args;
    const struct xm_benchmark_model *model;
    const struct xm_benchmark_inputs *inputs;
    const struct xm_benchmark_run *run;
    struct xm_benchmark_report *report;
    struct xm_error *err;
};

/* Rows of the report. */
enum xm_status xm_benchmark_results_report(const struct xm_benchmark_results *r);
/* Lines. */
enum xm_status xm_benchmark_results_say(const struct xm_benchmark_results *r);

#endif
