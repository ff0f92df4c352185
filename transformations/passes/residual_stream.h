/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values add up over the layers: r, and r + f(r) wherever f has a product.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_RESIDUAL_STREAM_H
#define XM_TRANSFORMATIONS_PASSES_RESIDUAL_STREAM_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets stream[id + index] for each such value; next_id of them, all false before. False: out of
 * memory. */
bool xm_find_residual_stream(const struct xm_graph *g, bool *stream);

#ifdef __cplusplus
}
#endif
#endif
