/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the residual stream of a model: values r, and r + f(r) where f contains a matrix
 * product.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_RESIDUAL_STREAM_H
#define XM_TRANSFORMATIONS_PASSES_RESIDUAL_STREAM_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets stream[id + index] for each value of the stream. `stream` has next_id elements, all false.
 * Returns false when out of memory. */
bool xm_find_residual_stream(const struct xm_graph *g, bool *stream);

#ifdef __cplusplus
}
#endif
#endif
