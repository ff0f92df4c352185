/* SPDX-License-Identifier: Apache-2.0
 *
 * Reshaping: gives new shapes to the inputs of a graph, before any pass has run.
 *
 * If an input's dimension is a symbol, a number for it replaces the symbol in the whole graph.
 * Symbols that each run sets (symbols.h) are not replaced, because one program serves every length:
 * for them a number is a bound, as a range is for any symbol.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_RESHAPE_H
#define XM_TRANSFORMATIONS_GRAPH_RESHAPE_H

#include "transformations/graph/bounds.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_input_shape {
    uint32_t input; /* number of the parameter, from 0 */
    uint32_t rank;
    struct xm_bound dim[XM_MAX_RANK];
};

/* Sets the shapes and infers all types. XM_INVALID: the shapes contradict each other or the model;
 * the message names the input or node, and the graph is unchanged. */
enum xm_status xm_graph_reshape(struct xm_graph *g, const struct xm_input_shape *list,
                                uint32_t n, struct xm_error *err);

/* Lists the symbols of inputs whose bounds allow one value only: writes at most `most` bindings,
 * returns their number. */
uint32_t xm_graph_fixed_symbols(const struct xm_graph *g, struct xm_binding *out,
                                uint32_t most);

#ifdef __cplusplus
}
#endif
#endif
