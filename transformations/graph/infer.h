/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions: types (and contents of small integer values) of an op's results from those of
 * its operands. Pure: they look at attributes and types only, so the same function serves
 * symbolic shapes in graphs and concrete ones in `evaluate`.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_INFER_H
#define XM_TRANSFORMATIONS_GRAPH_INFER_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_infer {
    enum xm_op op;
    const union xm_attr *attr;
    uint32_t n_in, n_out;
    const struct xm_use *in; /* their values' types and contents are read */
    struct xm_value *out; /* n_out; on entry the declared types (parameter, const, …) */
    struct xm_dim_pool *dims; /* for new polynomials */
    struct xm_arena *arena;   /* for contents */
    struct xm_error *err; /* sentences speak of operands by number and type, not nodes */
};

/* Runs the op's shape function. Arity has been checked by the caller. */
enum xm_status xm_infer_run(struct xm_infer *i);

/* The same for a node of a graph. The types and contents of out[n_out] (the node's results, or a
 * copy of them) become what its operands give; contents go to `arena`. */
enum xm_status xm_infer_node(struct xm_graph *g, const struct xm_node *n,
                             struct xm_arena *arena, struct xm_value *out,
                             struct xm_error *err);

/* Whether a declared type and an inferred one can be the same: fresh symbols agree with all. */
bool xm_type_agrees(const struct xm_type *a, const struct xm_type *b);

#ifdef __cplusplus
}
#endif
#endif
