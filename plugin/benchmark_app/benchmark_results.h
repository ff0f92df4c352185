/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of benchmark_app's run: its last output lines, and rows of the report.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RESULTS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RESULTS_H

#include "plugin/benchmark_app/benchmark_report.h"
#include "plugin/benchmark_app/benchmark_run.h"

/* Sources and destination of the results; nothing is owned. */
struct xm_benchmark_results {
    const struct xm_benchmark_args *args;
    const struct xm_benchmark_model *model;
    const struct xm_benchmark_inputs *inputs;
    const struct xm_benchmark_run *run;
    struct xm_benchmark_report *report;
    struct xm_error *err;
};

/* Adds the results to the report. */
enum xm_status xm_benchmark_results_report(const struct xm_benchmark_results *r);
/* Prints the results. */
enum xm_status xm_benchmark_results_say(const struct xm_benchmark_results *r);

#endif
