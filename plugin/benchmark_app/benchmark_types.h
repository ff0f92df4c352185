/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app's -ip, -op and -iop: the element types of tensors, which a model that was read is
 * given. What stands there and in -infer_precision is a type in any case.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_TYPES_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_TYPES_H

#include "plugin/benchmark_app/benchmark_model.h"

/* XM_INVALID: a flag has what is no type; the sentence names it. */
enum xm_status xm_benchmark_types_read(const struct xm_benchmark_args *a,
                                       struct xm_error *err);
/* Gives the model's ports the types that flags name, and reads the ports anew. XM_INVALID: a name
 * that the model does not have. XM_UNSUPPORTED: another type of a model that was not read, or a
 * type without tensors. */
enum xm_status xm_benchmark_types_set(struct xm_benchmark_model *m,
                                      const struct xm_benchmark_args *a,
                                      struct xm_error *err);

#endif
