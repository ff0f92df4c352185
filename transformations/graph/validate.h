/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of a whole graph: structure (order, uses, number of operands), types (those of each value
 * must be those that the shape function gives), attributes, states (each assign has a read_value,
 * names are unique); and, after fold_dequantize, that no constant above 1 MiB is dequantised by
 * separate ops.
 *
 * All errors are collected: `report` gets the graph with each error written under its node; err
 * gets the first error and their number.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_VALIDATE_H
#define XM_TRANSFORMATIONS_GRAPH_VALIDATE_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_LEFTOVER_BYTES = 1024 * 1024 };

/* XM_INVALID: *err has the first error and the number of errors. `report` may be NULL. */
enum xm_status xm_graph_validate(struct xm_graph *g, struct xm_strbuf *report,
                                 struct xm_error *err);
/* Fails if ordinary ops still dequantise (or convert to float) a constant above XM_LEFTOVER_BYTES,
 * or read one of a type that nothing can read: the message names node and weight. */
enum xm_status xm_graph_check_leftovers(struct xm_graph *g, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
