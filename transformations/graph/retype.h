/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes the element types of inputs and results of a graph on which no pass has run:
 *
 *     parameter f32 -> y           becomes   parameter f16 -> convert f32 -> y
 *     x f32 -> result              becomes   x f32 -> convert f16 -> result
 *
 * The parameter and the result keep their names.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_RETYPE_H
#define XM_TRANSFORMATIONS_GRAPH_RETYPE_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the element type of the n-th parameter (from 0); does nothing if it has that type.
 * XM_INVALID: there is no conversion between the two types. */
enum xm_status xm_graph_set_input_type(struct xm_graph *g, uint32_t input,
                                       enum xm_element type, struct xm_error *err);
/* Sets the element type of the n-th result (from 0), as xm_graph_set_input_type does for a
 * parameter. */
enum xm_status xm_graph_set_result_type(struct xm_graph *g, uint32_t result,
                                        enum xm_element type, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
