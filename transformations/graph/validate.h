/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of a whole graph: structure (order, uses, arity), types (each node's shape function
 * gives what the value says), attributes, states (each assign has its read, names are unique), and,
 * after fold_dequantize, that no dequantisation of a constant over 1 MiB is left.
 *
 * All errors are collected; `report` gets the graph with each error written under its node. err
 * gets the first with a count.
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
/* Refuses a graph in which something still dequantises (or converts to float) a constant
 * above XM_LEFTOVER_BYTES by ordinary ops, or reads one of a type that nothing can read:
 * the sentence names node and weight. */
enum xm_status xm_graph_check_leftovers(struct xm_graph *g, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
