/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shape functions (shape_*.c) share. Internal to transformations/graph.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_SHAPE_H
#define XM_TRANSFORMATIONS_GRAPH_SHAPE_H

#include "transformations/graph/infer.h"

/* xm_shape_<shape> of every row. */
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    enum xm_status xm_shape_##shape(struct xm_infer *i);
#include "transformations/graph/ops.def"

/* XM_INVALID with the sentence, followed by the operands' types. */
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

/* NULL: not known. */
static inline const struct xm_content *
xm_infer_content(const struct xm_infer *i, uint32_t k)
{
    bool known = xm_infer_has(i, k) && xm_content_known(&i->in[k].value->content);
    return known ? &i->in[k].value->content : NULL;
}

/* Operand k, a constant integer of one element. */
enum xm_status xm_infer_int(struct xm_infer *i, uint32_t k, int64_t *out);
/* Operand k as at most `max` dimensions: its content or, where only its length is known, fresh
 * symbols. */
enum xm_status xm_infer_dims(struct xm_infer *i, uint32_t k, struct xm_dim *out,
                             uint32_t max, uint32_t *n);
/* *out: `axis` counted from the front; XM_INVALID unless -rank <= axis < rank. */
enum xm_status xm_infer_axis(struct xm_infer *i, int64_t axis, uint32_t rank,
                             uint32_t *out);
/* Operand k, constant axes of a shape of `rank`, as a set of bits. XM_INVALID: an axis comes
 * twice. */
enum xm_status xm_infer_axes(struct xm_infer *i, uint32_t k, uint32_t rank,
                             uint32_t *set);
/* The element type that operands a and b agree on (dynamic agrees with all). */
enum xm_status xm_infer_same_element(struct xm_infer *i, uint32_t a, uint32_t b,
                                     enum xm_element *out);
/* XM_INVALID unless operand k has this rank. */
enum xm_status xm_infer_rank(struct xm_infer *i, uint32_t k, uint32_t rank);

/* numpy: trailing dimensions are aligned. out may be a or b. */
bool xm_shape_broadcast_pair(struct xm_dim_pool *p, const struct xm_shape *a,
                             const struct xm_shape *b, struct xm_shape *out);
/* Unifies two dimensions that must be equal; false: they cannot be. A constant replaces a symbol:
 * that is a fact about the model and no error. */
bool xm_dim_merge(struct xm_dim a, struct xm_dim b, struct xm_dim *out);

/* The integer result of an elementwise op with two operands (evaluate_eltwise.c). Sums and products
 * wrap around. If xm_int_divides(op), b must not be 0. */
bool xm_int_divides(enum xm_op op);
int64_t xm_int_binary(enum xm_op op, const union xm_attr *attr, int64_t a, int64_t b);

/* The part of operand 0 that an operation of the slice family reads. */
struct xm_slice_part {
    /* For each dimension of operand 0: the first index read; not a constant: not known. */
    struct xm_dim first[XM_MAX_RANK];
    int64_t step[XM_MAX_RANK];
    /* For each dimension of the result: that of operand 0; -1: a new one. */
    int from[XM_MAX_RANK];
};
/* The shape function of these operations; also computes the part that is read. */
enum xm_status xm_infer_slice_part(struct xm_infer *i, struct xm_slice_part *s);

/* Records the content of result k (copied). Does nothing above XM_MAX_CONTENT. */
enum xm_status xm_content_set(struct xm_infer *i, uint32_t k, const struct xm_dim *e,
                              uint32_t n);

#endif
