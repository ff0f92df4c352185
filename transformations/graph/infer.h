/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions: they compute the types of an op's results, and the contents of small integer
 * results, from those of its operands. They depend only on attributes, types and contents, so the
 * same function serves symbolic shapes in graphs and concrete ones in `evaluate`. */
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
    /* operands; only types and contents of their values are read */
    const struct xm_use *in;
    /* results [n_out]; on entry their declared types (parameter, const, …) */
    struct xm_value *out;
    struct xm_dim_pool *dims; /* pool for new dimensions */
    struct xm_arena *arena;   /* memory for contents */
    struct xm_error *err; /* messages name operands by number and type, not nodes      */
};

/* Runs the op's shape function. The caller has checked the number of operands. */
enum xm_status xm_infer_run(struct xm_infer *i);

/* Runs the shape function of a node of a graph. Sets the types and contents of out[n_out], which
 * are the node's results or a copy of them; contents are allocated in `arena`. */
enum xm_status xm_infer_node(struct xm_graph *g, const struct xm_node *n,
                             struct xm_arena *arena, struct xm_value *out,
                             struct xm_error *err);

/* Whether a declared type and an inferred one may be equal at run time: a fresh symbol may equal
 * any size. */
bool xm_type_agrees(const struct xm_type *a, const struct xm_type *b);

#ifdef __cplusplus
}
#endif
#endif
