/* SPDX-License-Identifier: Apache-2.0
 *
 * Other shapes for the inputs of a graph that no pass has seen yet.
 *
 * A number in place of a symbol of an input's own becomes that number everywhere. The symbols
 * that runs give numbers to (symbols.h) stay, since one program serves every length: there the
 * number is a bound, as ranges are everywhere.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_RESHAPE_H
#define XM_TRANSFORMATIONS_GRAPH_RESHAPE_H

#include "transformations/graph/bounds.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_input_shape {
    uint32_t input; /* the n-th parameter */
    uint32_t rank;
    struct xm_bound dim[XM_MAX_RANK];
};

/* Infers all types anew. Contradictions are XM_INVALID, with the input or the node in the
 * sentence; the graph is then as it was. */
enum xm_status xm_graph_reshape(struct xm_graph *g, const struct xm_input_shape *list,
                                uint32_t n, struct xm_error *err);

/* The numbers that bounds give to symbols of inputs: at most `most`; returns how many. */
uint32_t xm_graph_fixed_symbols(const struct xm_graph *g, struct xm_binding *out,
                                uint32_t most);

#ifdef __cplusplus
}
#endif
#endif
