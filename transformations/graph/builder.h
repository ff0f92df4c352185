/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that build graphs. Each returns the new value, so that calls can be nested:
 *
 *     struct xm_value *gate = xm_matmul(b, x, w_gate, false, true);
 *     struct xm_value *y = xm_op2(b, XM_OP_MULTIPLY, xm_op1(b, XM_OP_SWISH, gate), up);
 *     if (!y)
 *         return g->err.status;
 *
 * A failure returns NULL and is recorded in graph->err. A NULL operand returns NULL, too, so that
 * one check at the end is enough. New nodes are inserted before the builder's node `before`; their
 * types are inferred at once. */
#ifndef XM_TRANSFORMATIONS_GRAPH_BUILDER_H
#define XM_TRANSFORMATIONS_GRAPH_BUILDER_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_builder {
    struct xm_graph *graph;
    struct xm_node *before; /* new nodes go before this one; NULL: at the end */
    const char *name;       /* friendly name for new nodes; NULL: ""          */
};

static inline struct xm_builder
xm_builder_at_end(struct xm_graph *g)
{
    struct xm_builder b = {g, 0, 0};
    return b;
}

static inline struct xm_builder
xm_builder_before(struct xm_graph *g, struct xm_node *place)
{
    struct xm_builder b = {g, place, place->name};
    return b;
}

/* Builds a node of any op: checks the number of operands, copies attr (NULL: defaults), infers
 * types. For ops whose type is declared (parameter, const, read_value) use the functions below.
 * Returns NULL with graph->err set on failure; NULL also if an in[i] is NULL. */
struct xm_node *xm_node_build(struct xm_builder *b, enum xm_op op,
                              const union xm_attr *attr, struct xm_value *const *in,
                              uint32_t n_in);
/* As xm_node_build, for ops whose first result has a declared type; for readers of files and of
 * graph text. */
struct xm_node *xm_node_build_declared(struct xm_builder *b, enum xm_op op,
                                       const union xm_attr *attr,
                                       struct xm_value *const *in, uint32_t n_in,
                                       const struct xm_type *declared);
/* As xm_node_build, for ops with one result, which it returns. */
struct xm_value *xm_op_build(struct xm_builder *b, enum xm_op op,
                             const union xm_attr *attr, struct xm_value *const *in,
                             uint32_t n_in);
struct xm_value *xm_op1(struct xm_builder *b, enum xm_op op, struct xm_value *x);
struct xm_value *xm_op2(struct xm_builder *b, enum xm_op op, struct xm_value *x,
                        struct xm_value *y);

struct xm_value *xm_parameter(struct xm_builder *b, const char *name,
                              const struct xm_type *type);
struct xm_value *xm_result(struct xm_builder *b, const char *name, struct xm_value *x);
/* Builds a constant whose bytes the caller keeps alive (in the arena or a mapping). The elements of
 * small integer constants become known content (struct xm_content). */
struct xm_value *xm_const(struct xm_builder *b, const struct xm_type *type,
                          struct xm_data data);
/* Build constants with data in the arena. xm_const_ints: shape [n], or a scalar if n == -1 (one
 * element); `element` is i64 or i32. */
struct xm_value *xm_const_ints(struct xm_builder *b, enum xm_element element,
                               const int64_t *v, int n);
struct xm_value *xm_const_float(struct xm_builder *b, enum xm_element element, float v);
/* Copies a constant to f32 with another shape of equally many elements. */
struct xm_value *xm_const_as_f32(struct xm_builder *b, const struct xm_value *v,
                                 const struct xm_shape *shape);
/* Copies constant c [rows, cols], whose elements are whole bytes, to [cols, rows]. */
struct xm_value *xm_const_transposed(struct xm_builder *b, const struct xm_value *c);
/* Copies constant v to f32[n], n being its number of elements; returns v if it has that type. */
struct xm_value *xm_const_flat(struct xm_builder *b, const struct xm_value *v);
/* Builds a weight node; `logical` is the element type that its users see (f32, f16). */
struct xm_value *xm_weight(struct xm_builder *b, const struct xm_weight *w,
                           enum xm_element logical);
/* Builds a shape_value: integers given as symbolic dimensions; shape [n], or a scalar if n ==
 * -1. */
struct xm_value *xm_shape_value(struct xm_builder *b, enum xm_element element,
                                const struct xm_dim *d, int n);
/* Builds a read_value; `type` is the state's, `init` its first value or xm_none. */
struct xm_value *xm_read_value(struct xm_builder *b, const char *variable,
                               const struct xm_type *type, struct xm_value *init);
struct xm_node *xm_assign(struct xm_builder *b, const char *variable, struct xm_value *x);

/* Builds x w; transpose_a and transpose_b exchange the last two dimensions of x and w. */
struct xm_value *xm_matmul(struct xm_builder *b, struct xm_value *x, struct xm_value *w,
                           bool transpose_a, bool transpose_b);
struct xm_value *xm_convert(struct xm_builder *b, struct xm_value *x, enum xm_element to);
/* Reshapes x to d[rank], by a shape_value operand, with special_zero false. */
struct xm_value *xm_reshape(struct xm_builder *b, struct xm_value *x,
                            const struct xm_dim *d, uint32_t rank);
/* Reshapes x to the shape `like`; returns x if it has that shape. */
struct xm_value *xm_reshape_like(struct xm_builder *b, struct xm_value *x,
                                 const struct xm_shape *like);
struct xm_value *xm_transpose(struct xm_builder *b, struct xm_value *x,
                              const int64_t *order, uint32_t rank);

#ifdef __cplusplus
}
#endif
#endif
