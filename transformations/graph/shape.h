/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of the shape functions (shape_*.c). Internal to transformations/graph.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_SHAPE_H
#define XM_TRANSFORMATIONS_GRAPH_SHAPE_H

#include "transformations/graph/infer.h"

/* The shape function xm_shape_<shape> of each row. */
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    enum xm_status xm_shape_##shape(struct xm_infer *i);
#include "transformations/graph/ops.def"

/* Fails with XM_INVALID and the message, followed by the operands' types. */
enum xm_status xm_shape_fail(struct xm_infer *i, const char *fmt, ...) XM_PRINTF(2, 3);

static inline bool
xm_infer_has(const struct xm_infer *i, uint32_t k)
{
    return k < i->n_in && !xm_is_none(i->in[k].value);
}

static inline const struct xm_type *
xm_infer_type(const struct xm_infer *i, uint32_t k)
{
    return &i->in[k].value->type;
}

static inline const struct xm_shape *
xm_infer_shape(const struct xm_infer *i, uint32_t k)
{
    return &xm_infer_type(i, k)->shape;
}

/* The content of operand k; NULL: not known. */
static inline const struct xm_content *
xm_infer_content(const struct xm_infer *i, uint32_t k)
{
    bool known = xm_infer_has(i, k) && xm_content_known(&i->in[k].value->content);
    return known ? &i->in[k].value->content : NULL;
}

/* Reads operand k, which must be a known integer of one element. */
enum xm_status xm_infer_int(struct xm_infer *i, uint32_t k, int64_t *out);
/* Reads operand k as at most `max` dimensions: its content or, if only its length is known, fresh
 * symbols. */
enum xm_status xm_infer_dims(struct xm_infer *i, uint32_t k, struct xm_dim *out,
                             uint32_t max, uint32_t *n);
/* Sets *out to `axis` counted from the front; XM_INVALID unless -rank <= axis < rank. */
enum xm_status xm_infer_axis(struct xm_infer *i, int64_t axis, uint32_t rank,
                             uint32_t *out);
/* Reads operand k, constant axes of a shape with `rank` dimensions, as bits of *set. XM_INVALID: an
 * axis occurs twice. */
enum xm_status xm_infer_axes(struct xm_infer *i, uint32_t k, uint32_t rank,
                             uint32_t *set);
/* Sets *out to the common element type of operands a and b (dynamic agrees with all types);
 * XM_INVALID: they differ. */
enum xm_status xm_infer_same_element(struct xm_infer *i, uint32_t a, uint32_t b,
                                     enum xm_element *out);
/* XM_INVALID unless operand k has this rank. */
enum xm_status xm_infer_rank(struct xm_infer *i, uint32_t k, uint32_t rank);

/* Broadcasts two shapes as numpy does, aligned at the last dimension; false: they cannot be
 * broadcast. out may be a or b. */
bool xm_shape_broadcast_pair(struct xm_dim_pool *p, const struct xm_shape *a,
                             const struct xm_shape *b, struct xm_shape *out);
/* Unifies two dimensions that must be equal; false: they cannot be equal. If one is a symbol and
 * the other a constant, the result is the constant: that is a fact about the model and no error. */
bool xm_dim_merge(struct xm_dim a, struct xm_dim b, struct xm_dim *out);

/* Whether an elementwise op divides by its second operand, which must not be 0 then. */
bool xm_int_divides(enum xm_op op);
/* Computes an elementwise op with two integer operands (evaluate_eltwise.c). Sums and products wrap
 * around. */
int64_t xm_int_binary(enum xm_op op, const union xm_attr *attr, int64_t a, int64_t b);

/* The part of operand 0 that slice or strided_slice reads. */
struct xm_slice_part {
    /* For each dimension of operand 0 the first index that is read; if it is no constant, it is not
     * known. */
    struct xm_dim first[XM_MAX_RANK];
    int64_t step[XM_MAX_RANK];
    /* For each dimension of the result, its dimension of operand 0; -1: a new dimension. */
    int from[XM_MAX_RANK];
};
/* The shape function of these ops, which also computes that part. */
enum xm_status xm_infer_slice_part(struct xm_infer *i, struct xm_slice_part *s);

/* Sets the content of result k to a copy of e[n]; does nothing if n is above XM_MAX_CONTENT. */
enum xm_status xm_content_set(struct xm_infer *i, uint32_t k, const struct xm_dim *e,
                              uint32_t n);

#endif
