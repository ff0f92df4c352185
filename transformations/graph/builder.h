/* SPDX-License-Identifier: Apache-2.0
 *
 * Building graphs: value-returning, nestable, failing softly.
 *
 *     struct xm_value *gate = xm_matmul(b, x, w_gate, false, true);
 *     struct xm_value *y = xm_op2(b, XM_OP_MULTIPLY, xm_op1(b, XM_OP_SWISH, gate), up);
 *     if (!y)
 *         return g->err.status;
 *
 * A NULL operand gives NULL; the first cause is kept in graph->err, so one check at the end is
 * enough. New nodes stand before the builder's place, with types inferred at once.
 */
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

/* The general form: checks arity, copies attr (NULL: defaults), infers shapes. For ops whose
 * type is declared (parameter, const, read_value) use the functions below. Returns NULL with
 * graph->err set on failure; an in[i] of NULL returns NULL silently. */
struct xm_node *xm_node_build(struct xm_builder *b, enum xm_op op,
                              const union xm_attr *attr, struct xm_value *const *in,
                              uint32_t n_in);
/* The same for ops whose first result's type is declared (readers of files and text). */
struct xm_node *xm_node_build_declared(struct xm_builder *b, enum xm_op op,
                                       const union xm_attr *attr,
                                       struct xm_value *const *in, uint32_t n_in,
                                       const struct xm_type *declared);
/* The same for single-result ops. */
struct xm_value *xm_op_build(struct xm_builder *b, enum xm_op op,
                             const union xm_attr *attr, struct xm_value *const *in,
                             uint32_t n_in);
struct xm_value *xm_op1(struct xm_builder *b, enum xm_op op, struct xm_value *x);
struct xm_value *xm_op2(struct xm_builder *b, enum xm_op op, struct xm_value *x,
                        struct xm_value *y);

struct xm_value *xm_parameter(struct xm_builder *b, const char *name,
                              const struct xm_type *type);
struct xm_value *xm_result(struct xm_builder *b, const char *name, struct xm_value *x);
/* A constant whose bytes the caller keeps alive (arena or mapping). Small integer constants
 * get known content. */
struct xm_value *xm_const(struct xm_builder *b, const struct xm_type *type,
                          struct xm_data data);
/* Constants copied into the arena. xm_const_ints: rank 1 of n, or rank 0 with n == -1 (one
 * element). element: i64 or i32. */
struct xm_value *xm_const_ints(struct xm_builder *b, enum xm_element element,
                               const int64_t *v, int n);
struct xm_value *xm_const_float(struct xm_builder *b, enum xm_element element, float v);
/* A copy of a constant as f32, with another shape of as many elements. */
struct xm_value *xm_const_as_f32(struct xm_builder *b, const struct xm_value *v,
                                 const struct xm_shape *shape);
/* A copy of constant c [rows, cols], of whole bytes, as [cols, rows]. */
struct xm_value *xm_const_transposed(struct xm_builder *b, const struct xm_value *c);
/* A copy of constant v as f32[n], n its number of elements; v itself if it has that type. */
struct xm_value *xm_const_flat(struct xm_builder *b, const struct xm_value *v);
/* A weight; `logical` is the element type it has for its users (f32, f16). */
struct xm_value *xm_weight(struct xm_builder *b, const struct xm_weight *w,
                           enum xm_element logical);
/* Integer values known symbolically: rank 1 of n, or rank 0 with n == -1. */
struct xm_value *xm_shape_value(struct xm_builder *b, enum xm_element element,
                                const struct xm_dim *d, int n);
/* type: of the state; init may be xm_none. */
struct xm_value *xm_read_value(struct xm_builder *b, const char *variable,
                               const struct xm_type *type, struct xm_value *init);
struct xm_node *xm_assign(struct xm_builder *b, const char *variable, struct xm_value *x);

/* x w, with the last two dimensions of either exchanged on request. */
struct xm_value *xm_matmul(struct xm_builder *b, struct xm_value *x, struct xm_value *w,
                           bool transpose_a, bool transpose_b);
struct xm_value *xm_convert(struct xm_builder *b, struct xm_value *x, enum xm_element to);
/* Reshape to dims (through a shape_value operand, special_zero false). */
struct xm_value *xm_reshape(struct xm_builder *b, struct xm_value *x,
                            const struct xm_dim *d, uint32_t rank);
/* x reshaped to `like`; x itself if it has that shape. */
struct xm_value *xm_reshape_like(struct xm_builder *b, struct xm_value *x,
                                 const struct xm_shape *like);
struct xm_value *xm_transpose(struct xm_builder *b, struct xm_value *x,
                              const int64_t *order, uint32_t rank);

#ifdef __cplusplus
}
#endif
#endif
