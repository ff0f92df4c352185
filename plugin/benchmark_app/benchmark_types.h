/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app's -ip, -op and -iop: the element types of tensors. They are the ports' own; a flag
 * may say so. What stands there and in -infer_precision is a type in any case.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_TYPES_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_TYPES_H

#include "plugin/benchmark_app/benchmark_model.h"

/* XM_INVALID: a flag has what is no type; the sentence names it. */
enum xm_status xm_benchmark_types_read(const struct xm_benchmark_args *a,
                                       struct xm_error *err);
/* XM_UNSUPPORTED: another type. XM_INVALID: a name that the model does not have. */
enum xm_status xm_benchmark_types_check(const struct xm_benchmark_model *m,
                                        const struct xm_benchmark_args *a,
                                        struct xm_error *err);

#endif
