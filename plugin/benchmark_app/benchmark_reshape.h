/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app's -layout, -shape and -b: names and sizes for the dimensions of a model's inputs.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RESHAPE_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RESHAPE_H

#include "plugin/benchmark_app/benchmark_model.h"

/* Replaces the inputs' names in `said` (the values of a flag) by the names of the ports they
 * mean. */
void xm_benchmark_use_names(const struct xm_benchmark_model *m,
                            struct xm_benchmark_shapes *said);
/* Sets the ports' layouts, reshapes the model, and prints the result. A model that was not read (an
 * exported one) must have these shapes already. `batch` (0: not given) is the size of each
 * dimension N of a layout, or of the first dimension of an input without a layout. */
enum xm_status xm_benchmark_reshape(struct xm_benchmark_model *m,
                                    const struct xm_benchmark_shapes *layouts,
                                    const struct xm_benchmark_shapes *shapes,
                                    uint64_t batch, struct xm_error *err);
/* XM_INVALID: OpenVINO does not accept a layout, independent of the model. */
enum xm_status xm_benchmark_layouts_check(const struct xm_benchmark_shapes *layouts,
                                          struct xm_error *err);

/* The batch size: the dimension N of the first input that has one, in `data` (-data_shape) or in
 * the model; 1: no input has one; -1: it is not fixed. */
int64_t xm_benchmark_batch(const struct xm_benchmark_model *m,
                           const struct xm_benchmark_shapes *data);

#endif
