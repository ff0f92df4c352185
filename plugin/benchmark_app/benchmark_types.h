/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app's -ip, -op and -iop: the element types of input and output tensors.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_TYPES_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_TYPES_H

#include "plugin/benchmark_app/benchmark_model.h"

/* Checks these flags and -infer_precision. XM_INVALID: a value is not a type; the sentence names
 * the flag. */
enum xm_status xm_benchmark_types_read(const struct xm_benchmark_args *a,
                                       struct xm_error *err);
/* Sets the ports' types and reads the ports again. XM_INVALID: the model has no port of a name.
 * XM_UNSUPPORTED: a type that no tensor has, or a model that was not read has another type. */
enum xm_status xm_benchmark_types_set(struct xm_benchmark_model *m,
                                      const struct xm_benchmark_args *a,
                                      struct xm_error *err);

#endif
