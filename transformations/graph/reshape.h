/* SPDX-License-Identifier: Apache-2.0
 *
 * Reshaping: new shapes for the inputs of a graph, before any pass has run.
 *
 * A number for a dimension that is a symbol of the input replaces the symbol in the whole graph.
 * Symbols whose value each run sets (symbols.h) stay, because one program serves every length:
 * there the number is a bound, as a range is for every symbol.
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

/* Sets the shapes and infers all types. XM_INVALID: shapes contradict each other; the sentence
 * names the input or the node, and the graph is unchanged. */
enum xm_status xm_graph_reshape(struct xm_graph *g, const struct xm_input_shape *list,
                                uint32_t n, struct xm_error *err);

/* The values that bounds give to symbols of inputs: writes at most `most`, returns their number. */
uint32_t xm_graph_fixed_symbols(const struct xm_graph *g, struct xm_binding *out,
                                uint32_t most);

#ifdef __cplusplus
}
#endif
#endif
