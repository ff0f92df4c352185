/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app's -layout, -shape and -b: what the inputs' dimensions are called, and other sizes
 * for them.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RESHAPE_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RESHAPE_H

#include "plugin/benchmark_app/benchmark_model.h"

/* Puts the ports' own names in place of what flags call the inputs. */
void xm_benchmark_use_names(const struct xm_benchmark_model *m,
                            struct xm_benchmark_shapes *said);
/* Gives the ports their layouts, and a model that was read its shapes, and says so. What was
 * compiled at once must have them already. A batch is the first dimension of an input that has no
 * layout. */
enum xm_status xm_benchmark_reshape(struct xm_benchmark_model *m,
                                    const struct xm_benchmark_shapes *layouts,
                                    const struct xm_benchmark_shapes *shapes,
                                    uint64_t batch, struct xm_error *err);
/* Whether OpenVINO takes them, whatever the model. */
enum xm_status xm_benchmark_layouts_check(const struct xm_benchmark_shapes *layouts,
                                          struct xm_error *err);

/* What the first input that has a dimension N has there, or gets by -data_shape; 1: none has one;
 * -1: it is not known. */
int64_t xm_benchmark_batch(const struct xm_benchmark_model *m,
                           const struct xm_benchmark_shapes *data);

#endif
