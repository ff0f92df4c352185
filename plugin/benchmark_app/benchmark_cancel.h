/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C while benchmark_app measures: a thread waits for it and cancels the requests through
 * OpenVINO's C API, which is not safe to call from a signal handler.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_CANCEL_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_CANCEL_H

#include "plugin/benchmark_app/benchmark_run.h"

struct xm_benchmark_cancel;

/* From now on Ctrl-C cancels each run of the requests, and xm_cli_interrupted() says so. */
enum xm_status xm_benchmark_cancel_begin(const struct xm_benchmark_run *r,
                                         struct xm_benchmark_cancel **out,
                                         struct xm_error *err);
/* Ends the thread and frees; from now on Ctrl-C ends the process again. */
void xm_benchmark_cancel_end(struct xm_benchmark_cancel *c);

#endif
