/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of benchmark_app's flags that need neither the model nor a device.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_CHECK_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_CHECK_H

#include "plugin/benchmark_app/benchmark_args.h"
#include "runtime/util/status.h"

/* Checks the values of the flags, but not the file of -load_config. XM_INVALID: the sentence names
 * the flag. */
enum xm_status xm_benchmark_check_values(const struct xm_benchmark_args *a,
                                         struct xm_error *err);
/* Checks that the model's file and the report's folder exist and that the files of -exec_graph_path
 * and -dump_config can be written. Leaves no file behind. */
enum xm_status xm_benchmark_check_paths(const struct xm_benchmark_args *a,
                                        struct xm_error *err);

#endif
