/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions of elementwise ops: numpy broadcasting, and arithmetic on known
 * contents.
 *
 *     f32[batch,tokens,256] + f32[256]  ->  f32[batch,tokens,256]
 *     {past} + {tokens}                 ->  {past + tokens}
 */
#include <string.h>

#include "transformations/graph/shape.h"

/* ---- arithmetic on contents -------------------------------------------------------- */

/* Computes an op on two constants; false: no value (division by zero, overflow). */
static bool
fold(const struct xm_infer *i, int64_t a, int64_t b, int64_t *out)
{
    if (xm_int_divides(i->op) && (b == 0 || (a == INT64_MIN && b == -1)))
        return false;
    *out = xm_int_binary(i->op, i->attr, a, b);
    return true;
}

/* Computes one element of a content: *out = a `op` b; false: it is not known. */
typedef bool (*combine_fn)(const struct xm_infer *i, struct xm_dim a, struct xm_dim b,
                           struct xm_dim *out);

static bool
arithmetic(const struct xm_infer *i, struct xm_dim a, struct xm_dim b, struct xm_dim *out)
{
    struct xm_dim_pool *p = i->dims;
    int64_t n;
    bool exact;
    if (i->op == XM_OP_POWER || i->op == XM_OP_GLU)
        return false;
    if (i->op == XM_OP_ADD)
        *out = xm_dim_add(p, a, b);
    else if (i->op == XM_OP_SUBTRACT)
        *out = xm_dim_sub(p, a, b);
    else if (i->op == XM_OP_MULTIPLY)
        *out = xm_dim_mul(p, a, b);
    else if (i->op == XM_OP_SQUARED_DIFFERENCE)
        *out = xm_dim_mul(p, xm_dim_sub(p, a, b), xm_dim_sub(p, a, b));
    else if (xm_dim_is_const(a) && xm_dim_is_const(b) && fold(i, a.n, b.n, &n))
        *out = xm_dim_const(n);
    else if (i->op == XM_OP_DIVIDE)
        *out = xm_dim_div(p, a, b, &exact);
    else if ((i->op == XM_OP_MINIMUM || i->op == XM_OP_MAXIMUM) && xm_dim_eq(a, b))
        *out = a;
    else
        *out = xm_dim_fresh(p);
    return true;
}

/* Comparison and logic, for constants and equal symbols. */
static bool
compare(const struct xm_infer *i, struct xm_dim a, struct xm_dim b, struct xm_dim *out)
{
    bool logical = i->op == XM_OP_LOGICAL_AND || i->op == XM_OP_LOGICAL_OR ||
                   i->op == XM_OP_LOGICAL_XOR;
    bool are_const = xm_dim_is_const(a) && xm_dim_is_const(b);
    if (!are_const && (logical || !xm_dim_eq(a, b)))
        return false;
    *out = xm_dim_const(
        xm_int_binary(i->op, i->attr, a.n, b.n)); /* equal symbols have n = 0 both */
    return true;
}

/* Element j of a content that is broadcast. */
static struct xm_dim
element_of(const struct xm_content *c, uint32_t j)
{
    return c->e[c->n == 1 ? 0 : j];
}

/* ---- two operands ------------------------------------------------------------------ */

/* Sets the common type of both operands, broadcast, and the content. */
static enum xm_status
broadcast(struct xm_infer *i, combine_fn combine)
{
    const struct xm_content *a = xm_infer_content(i, 0), *b = xm_infer_content(i, 1);
    struct xm_dim e[XM_MAX_CONTENT];
    XM_TRY(xm_infer_same_element(i, 0, 1, &i->out[0].type.element));
    if (!xm_shape_broadcast_pair(i->dims, xm_infer_shape(i, 0), xm_infer_shape(i, 1),
                                 &i->out[0].type.shape))
        return xm_shape_fail(i, "operands 0 and 1 cannot be broadcast together");
    if (!a || !b || !xm_element_is_int(i->out[0].type.element))
        return XM_OK;
    uint32_t n = a->n == 1 ? b->n : a->n;
    for (uint32_t j = 0; j < n; j++)
        if (!combine(i, element_of(a, j), element_of(b, j), &e[j]))
            return XM_OK;
    return xm_content_set(i, 0, e, n);
}

enum xm_status
xm_shape_broadcast2(struct xm_infer *i)
{
    return broadcast(i, arithmetic);
}

enum xm_status
xm_shape_compare(struct xm_infer *i)
{
    XM_TRY(broadcast(i, compare));
    i->out[0].type.element = XM_BOOL;
    return XM_OK;
}

/* ---- one operand ------------------------------------------------------------------- */

static enum xm_status
same_content(struct xm_infer *i)
{
    const struct xm_content *c = xm_infer_content(i, 0);
    struct xm_dim e[XM_MAX_CONTENT];
    if (!c)
        return XM_OK;
    if (i->op == XM_OP_RESULT || i->op == XM_OP_ASSIGN) {
        i->out[0].content = *c;
        return XM_OK;
    }
    if (i->op != XM_OP_NEGATIVE)
        return XM_OK;
    for (uint32_t j = 0; j < c->n; j++)
        e[j] = xm_dim_sub(i->dims, xm_dim_const(0), c->e[j]);
    return xm_content_set(i, 0, e, c->n);
}

static enum xm_status
check_scatter(struct xm_infer *i)
{
    const struct xm_shape *ids = xm_infer_shape(i, 1), *updates = xm_infer_shape(i, 2);
    struct xm_dim d;
    int64_t axis;
    uint32_t at;
    XM_TRY(xm_infer_int(i, 3, &axis));
    XM_TRY(xm_infer_axis(i, axis, i->out[0].type.shape.rank, &at));
    XM_TRY(xm_infer_rank(i, 1, i->out[0].type.shape.rank));
    XM_TRY(xm_infer_rank(i, 2, i->out[0].type.shape.rank));
    for (uint32_t j = 0; j < ids->rank; j++)
        if (!xm_dim_merge(ids->dim[j], updates->dim[j], &d))
            return xm_shape_fail(i, "indices and updates differ in dimension %u", j);
    return XM_OK;
}

/* The result has the type of operand 0. */
enum xm_status
xm_shape_same(struct xm_infer *i)
{
    uint32_t at;
    int64_t axis = 0;
    i->out[0].type = *xm_infer_type(i, 0);
    switch (i->op) {
    case XM_OP_SOFTMAX:
        return xm_infer_axis(i, i->attr->axis.axis, i->out[0].type.shape.rank, &at);
    case XM_OP_CUM_SUM:
        if (xm_infer_has(i, 1))
            XM_TRY(xm_infer_int(i, 1, &axis));
        return xm_infer_axis(i, axis, i->out[0].type.shape.rank, &at);
    case XM_OP_SCATTER_ELEMENTS_UPDATE:
        return check_scatter(i);
    default:
        return same_content(i);
    }
}

enum xm_status
xm_shape_same_float(struct xm_infer *i)
{
    const enum xm_element e = xm_infer_type(i, 0)->element;
    if (e != XM_DYNAMIC && !xm_element_is_float(e))
        return xm_shape_fail(i, "operand 0 is %s, expected floats", xm_element_text(e));
    return xm_shape_same(i);
}

/* ---- conversions ------------------------------------------------------------------- */

/* Converts to type `to`. The content is kept if the type can hold every dimension. */
static enum xm_status
convert_to(struct xm_infer *i, enum xm_element to)
{
    const struct xm_content *c = xm_infer_content(i, 0);
    i->out[0].type = *xm_infer_type(i, 0);
    i->out[0].type.element = to;
    if (c && (to == XM_I32 || to == XM_I64 || to == XM_U64 ||
              to == xm_infer_type(i, 0)->element))
        i->out[0].content = *c;
    return XM_OK;
}

enum xm_status
xm_shape_convert(struct xm_infer *i)
{
    return convert_to(i, i->attr->convert.element);
}

enum xm_status
xm_shape_convert_like(struct xm_infer *i)
{
    return convert_to(i, xm_infer_type(i, 1)->element);
}

enum xm_status
xm_shape_select(struct xm_infer *i)
{
    const struct xm_content *c = xm_infer_content(i, 0), *a = xm_infer_content(i, 1),
                            *b = xm_infer_content(i, 2);
    struct xm_dim e[XM_MAX_CONTENT];
    struct xm_shape *s = &i->out[0].type.shape;
    uint32_t n = 1;
    XM_TRY(xm_infer_same_element(i, 1, 2, &i->out[0].type.element));
    if (!xm_shape_broadcast_pair(i->dims, xm_infer_shape(i, 1), xm_infer_shape(i, 2),
                                 s) ||
        !xm_shape_broadcast_pair(i->dims, s, xm_infer_shape(i, 0), s))
        return xm_shape_fail(i, "operands 0, 1 and 2 cannot be broadcast together");
    if (!c || !a || !b || !xm_element_is_int(i->out[0].type.element))
        return XM_OK;
    n = c->n != 1 ? c->n : a->n != 1 ? a->n : b->n;
    for (uint32_t j = 0; j < n; j++) {
        struct xm_dim which = element_of(c, j);
        struct xm_dim x = element_of(a, j), y = element_of(b, j);
        if (xm_dim_is_const(which))
            e[j] = which.n ? x : y;
        else
            e[j] = xm_dim_eq(x, y) ? x : xm_dim_fresh(i->dims);
    }
    return xm_content_set(i, 0, e, n);
}
