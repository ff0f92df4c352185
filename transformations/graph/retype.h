/* SPDX-License-Identifier: Apache-2.0
 *
 * Other element types for the tensors of a graph that no pass has seen yet:
 *
 *     parameter f32 -> y           becomes   parameter f16 -> convert f32 -> y
 *     x f32 -> result              becomes   x f32 -> convert f16 -> result
 *
 * Names stay with the parameter and the result.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_RETYPE_H
#define XM_TRANSFORMATIONS_GRAPH_RETYPE_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the element type of the n-th parameter. Nothing changes if it has that type. XM_INVALID:
 * there is no conversion between the two types. */
enum xm_status xm_graph_set_input_type(struct xm_graph *g, uint32_t input,
                                       enum xm_element type, struct xm_error *err);
/* The same for the n-th result. */
enum xm_status xm_graph_set_result_type(struct xm_graph *g, uint32_t result,
                                        enum xm_element type, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
