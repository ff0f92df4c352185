/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions of ops that re-label, join, cut or repeat whole dimensions.
 *
 *     reshape f32[batch,tokens,256] {-1, 256}  ->  f32[batch*tokens,256]
 */
#include "transformations/graph/shape.h"

/* Keeps the content of operand 0, because its elements do not change, if the result is a scalar or
 * vector. */
static enum xm_status
keep_content(struct xm_infer *i)
{
    const struct xm_content *c = xm_infer_content(i, 0);
    if (c && i->out[0].type.shape.rank <= 1)
        i->out[0].content = *c;
    return XM_OK;
}

/* ---- reshape, squeeze, unsqueeze, transpose ---------------------------------------- */

/* Computes the dimension that -1 stands for: all elements divided by the product of the other
 * dimensions. */
static enum xm_status
solve_reshape(struct xm_infer *i, struct xm_dim total, struct xm_dim others,
              struct xm_dim *out)
{
    bool exact;
    if (xm_dim_is(others, 0)) {
        *out = xm_dim_is_const(total) ? xm_dim_const(0) : xm_dim_fresh(i->dims);
        return XM_OK;
    }
    *out = xm_dim_div(i->dims, total, others, &exact);
    if (!exact && xm_dim_is_const(total) && xm_dim_is_const(others))
        return xm_shape_fail(i,
                             "%lld elements cannot be divided into rows of %lld elements",
                             (long long)total.n, (long long)others.n);
    return XM_OK;
}

static enum xm_status
copy_zeros(struct xm_infer *i, struct xm_shape *s)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    for (uint32_t j = 0; j < s->rank; j++) {
        if (!xm_dim_is(s->dim[j], 0))
            continue;
        if (j >= in->rank)
            return xm_shape_fail(
                i, "dimension %u would be copied from operand 0, which has rank %u", j,
                in->rank);
        s->dim[j] = in->dim[j];
    }
    return XM_OK;
}

enum xm_status
xm_shape_reshape(struct xm_infer *i)
{
    struct xm_shape s;
    struct xm_dim total = xm_shape_elements(i->dims, xm_infer_shape(i, 0));
    struct xm_dim others = xm_dim_const(1);
    int solved = -1;
    XM_TRY(xm_infer_dims(i, 1, s.dim, XM_MAX_RANK, &s.rank));
    if (i->attr->reshape.special_zero)
        XM_TRY(copy_zeros(i, &s));
    for (uint32_t j = 0; j < s.rank; j++) {
        if (!xm_dim_is(s.dim[j], -1)) {
            others = xm_dim_mul(i->dims, others, s.dim[j]);
            continue;
        }
        if (solved >= 0)
            return xm_shape_fail(i, "operand 1 holds -1 twice");
        solved = (int)j;
    }
    if (solved >= 0)
        XM_TRY(solve_reshape(i, total, others, &s.dim[solved]));
    else if (xm_dim_is_const(total) && xm_dim_is_const(others) && total.n != others.n)
        return xm_shape_fail(i, "%lld elements cannot be reshaped to %lld elements",
                             (long long)total.n, (long long)others.n);
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, s};
    return keep_content(i);
}

enum xm_status
xm_shape_squeeze(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    struct xm_shape s = {0};
    uint32_t axes = 0;
    bool named = xm_infer_has(i, 1);
    if (named)
        XM_TRY(xm_infer_axes(i, 1, in->rank, &axes));
    for (uint32_t j = 0; j < in->rank; j++) {
        bool is_const = xm_dim_is_const(in->dim[j]);
        if (!named && !is_const)
            return xm_shape_fail(i, "squeeze without axes needs constant dimensions");
        if (axes & (1u << j) && is_const && in->dim[j].n != 1)
            return xm_shape_fail(i, "dimension %u is not 1", j);
        if (named ? !(axes & (1u << j)) : in->dim[j].n != 1)
            s.dim[s.rank++] = in->dim[j];
    }
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, s};
    return keep_content(i);
}

enum xm_status
xm_shape_unsqueeze(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    const struct xm_content *c = xm_infer_content(i, 1);
    struct xm_shape s = {.rank = in->rank + (c ? c->n : 0)};
    uint32_t axes;
    if (s.rank > XM_MAX_RANK)
        return xm_shape_fail(i, "the result would have rank %u, at most %d is possible",
                             s.rank, XM_MAX_RANK);
    XM_TRY(xm_infer_axes(i, 1, s.rank, &axes));
    for (uint32_t j = 0, from = 0; j < s.rank; j++)
        s.dim[j] = axes & (1u << j) ? xm_dim_const(1) : in->dim[from++];
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, s};
    return keep_content(i);
}

enum xm_status
xm_shape_transpose(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    const struct xm_content *order = xm_infer_content(i, 1);
    struct xm_shape s = {.rank = in->rank};
    uint32_t seen;
    if (!order)
        return xm_shape_fail(i, "operand 1, the order, must be constant");
    if (order->n != 0 && order->n != in->rank)
        return xm_shape_fail(i, "the order has %u elements for a shape of rank %u",
                             order->n, in->rank);
    XM_TRY(xm_infer_axes(i, 1, in->rank, &seen));
    /* without an order the dimensions are reversed */
    for (uint32_t j = 0; j < s.rank; j++) {
        int64_t from = order->n ? order->e[j].n : (int64_t)(s.rank - 1 - j);
        if (from < 0)
            return xm_shape_fail(i, "the order holds a negative axis");
        s.dim[j] = in->dim[from];
    }
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, s};
    return keep_content(i);
}

/* ---- concat, split ----------------------------------------------------------------- */

static enum xm_status
concat_content(struct xm_infer *i)
{
    struct xm_dim e[XM_MAX_CONTENT];
    uint32_t n = 0;
    for (uint32_t k = 0; k < i->n_in; k++) {
        const struct xm_content *c = xm_infer_content(i, k);
        if (!c || n + c->n > XM_MAX_CONTENT)
            return XM_OK;
        for (uint32_t j = 0; j < c->n; j++)
            e[n++] = c->e[j];
    }
    return xm_content_set(i, 0, e, n);
}

enum xm_status
xm_shape_concat(struct xm_infer *i)
{
    struct xm_shape s = *xm_infer_shape(i, 0);
    uint32_t axis;
    i->out[0].type.element = xm_infer_type(i, 0)->element;
    XM_TRY(xm_infer_axis(i, i->attr->axis.axis, s.rank, &axis));
    for (uint32_t k = 1; k < i->n_in; k++) {
        const struct xm_shape *t = xm_infer_shape(i, k);
        XM_TRY(xm_infer_same_element(i, 0, k, &i->out[0].type.element));
        XM_TRY(xm_infer_rank(i, k, s.rank));
        for (uint32_t j = 0; j < s.rank; j++) {
            if (j == axis)
                s.dim[j] = xm_dim_add(i->dims, s.dim[j], t->dim[j]);
            else if (!xm_dim_merge(s.dim[j], t->dim[j], &s.dim[j]))
                return xm_shape_fail(i, "operands 0 and %u differ in dimension %u", k, j);
        }
    }
    i->out[0].type.shape = s;
    return s.rank == 1 ? concat_content(i) : XM_OK;
}

/* Computes the lengths of a variadic split, one of which may be given as -1. */
static enum xm_status
split_lengths(struct xm_infer *i, struct xm_dim total, struct xm_dim *length)
{
    const struct xm_content *c = xm_infer_content(i, 2);
    struct xm_dim sum = xm_dim_const(0);
    uint32_t solved = i->n_out;
    for (uint32_t k = 0; k < i->n_out; k++) {
        length[k] = c && k < c->n ? c->e[k] : xm_dim_fresh(i->dims);
        if (!xm_dim_is(length[k], -1))
            sum = xm_dim_add(i->dims, sum, length[k]);
        else if (solved != i->n_out)
            return xm_shape_fail(i, "operand 2 holds -1 twice");
        else
            solved = k;
    }
    if (solved != i->n_out)
        length[solved] = xm_dim_sub(i->dims, total, sum);
    else if (xm_dim_is_const(total) && xm_dim_is_const(sum) && total.n != sum.n)
        return xm_shape_fail(i, "the parts have %lld elements in all, not %lld",
                             (long long)sum.n, (long long)total.n);
    return XM_OK;
}

/* Computes the lengths of a split into equal parts. */
static enum xm_status
equal_lengths(struct xm_infer *i, uint32_t axis, struct xm_dim total,
              struct xm_dim *length)
{
    bool exact;
    length[0] = xm_dim_div(i->dims, total, xm_dim_const(i->n_out), &exact);
    if (!exact && xm_dim_is_const(total))
        return xm_shape_fail(i, "dimension %u cannot be split into %u equal parts", axis,
                             i->n_out);
    for (uint32_t k = 1; k < i->n_out; k++)
        length[k] = length[0];
    return XM_OK;
}

/* Makes result k the `length` elements from `begin` on. */
static enum xm_status
cut(struct xm_infer *i, uint32_t k, uint32_t axis, struct xm_dim begin,
    struct xm_dim length)
{
    const struct xm_content *c = xm_infer_content(i, 0);
    i->out[k].type = *xm_infer_type(i, 0);
    i->out[k].type.shape.dim[axis] = length;
    if (!c || !xm_dim_is_const(begin) || !xm_dim_is_const(length) || begin.n < 0 ||
        length.n < 0 || begin.n > c->n || length.n > c->n - begin.n)
        return XM_OK;
    return xm_content_set(i, k, c->e + begin.n, (uint32_t)length.n);
}

enum xm_status
xm_shape_split(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    struct xm_dim begin = xm_dim_const(0);
    struct xm_dim *length = xm_arena_alloc(i->arena, i->n_out * sizeof(*length));
    int64_t axis_value;
    uint32_t axis;
    if (!length)
        return xm_no_memory(i->err, "a split");
    XM_TRY(xm_infer_int(i, 1, &axis_value));
    XM_TRY(xm_infer_axis(i, axis_value, in->rank, &axis));
    XM_TRY(i->op == XM_OP_SPLIT ? equal_lengths(i, axis, in->dim[axis], length)
                                : split_lengths(i, in->dim[axis], length));
    for (uint32_t k = 0; k < i->n_out; k++) {
        XM_TRY(cut(i, k, axis, begin, length[k]));
        begin = xm_dim_add(i->dims, begin, length[k]);
    }
    return XM_OK;
}

/* ---- broadcast, tile --------------------------------------------------------------- */

static enum xm_status
broadcast_content(struct xm_infer *i)
{
    const struct xm_content *c = xm_infer_content(i, 0);
    const struct xm_shape *s = &i->out[0].type.shape;
    struct xm_dim e[XM_MAX_CONTENT];
    if (!c || s->rank > 1)
        return XM_OK;
    if (s->rank == 0 || (xm_dim_is_const(s->dim[0]) && s->dim[0].n == c->n))
        return keep_content(i);
    if (c->n != 1 || !xm_dim_is_const(s->dim[0]) || s->dim[0].n > XM_MAX_CONTENT)
        return XM_OK;
    for (int64_t j = 0; j < s->dim[0].n; j++)
        e[j] = c->e[0];
    return xm_content_set(i, 0, e, (uint32_t)s->dim[0].n);
}

/* Broadcast with explicit mapping: dimension j of operand 0 becomes dimension axes[j] of the
 * result. */
static enum xm_status
place_explicitly(struct xm_infer *i, struct xm_shape *from, uint32_t rank)
{
    const struct xm_content *axes = xm_infer_content(i, 2);
    struct xm_shape s = {.rank = rank};
    uint32_t seen;
    if (!axes || axes->n != from->rank)
        return xm_shape_fail(i,
                             "operand 2 must name one constant axis for each dimension");
    XM_TRY(xm_infer_axes(i, 2, rank, &seen));
    for (uint32_t j = 0; j < rank; j++)
        s.dim[j] = xm_dim_const(1);
    for (uint32_t j = 0; j < from->rank; j++) {
        uint32_t axis;
        XM_TRY(xm_infer_axis(i, axes->e[j].n, rank, &axis));
        s.dim[axis] = from->dim[j];
    }
    *from = s;
    return XM_OK;
}

enum xm_status
xm_shape_broadcast(struct xm_infer *i)
{
    struct xm_shape from = *xm_infer_shape(i, 0), target, both;
    int mode = i->attr->broadcast.mode;
    XM_TRY(xm_infer_dims(i, 1, target.dim, XM_MAX_RANK, &target.rank));
    if (mode == XM_BROADCAST_EXPLICIT)
        XM_TRY(place_explicitly(i, &from, target.rank));
    if (!xm_shape_broadcast_pair(i->dims, &from, &target, &both))
        return xm_shape_fail(i,
                             "operand 0 cannot be broadcast to the shape of operand 1");
    if (mode != XM_BROADCAST_BIDIRECTIONAL) {
        for (uint32_t j = 0; both.rank == target.rank && j < both.rank; j++)
            if (xm_dim_is(target.dim[j], 1) && !xm_dim_is(both.dim[j], 1) &&
                xm_dim_is_const(both.dim[j]))
                return xm_shape_fail(i, "dimension %u of operand 0 would shrink to 1", j);
        if (both.rank != target.rank)
            return xm_shape_fail(i, "operand 0 has a higher rank than the target shape");
        both = target;
    }
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, both};
    return broadcast_content(i);
}

enum xm_status
xm_shape_tile(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    struct xm_shape times, s;
    XM_TRY(xm_infer_dims(i, 1, times.dim, XM_MAX_RANK, &times.rank));
    s.rank = in->rank > times.rank ? in->rank : times.rank;
    for (uint32_t j = 0; j < s.rank; j++) {
        uint32_t skip_in = s.rank - in->rank, skip_times = s.rank - times.rank;
        struct xm_dim d = j < skip_in ? xm_dim_const(1) : in->dim[j - skip_in];
        struct xm_dim t = j < skip_times ? xm_dim_const(1) : times.dim[j - skip_times];
        if (xm_dim_is_const(t) && t.n < 0)
            return xm_shape_fail(i, "operand 1 holds the negative count %lld",
                                 (long long)t.n);
        s.dim[j] = xm_dim_mul(i->dims, d, t);
        if (xm_dim_is_const(d) && xm_dim_is_const(t) && !xm_dim_is_const(s.dim[j]))
            return xm_shape_fail(i, "dimension %u would exceed 64 bits", j);
    }
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, s};
    return XM_OK;
}

/* ---- joining the parts of ranks ------------------------------------------------------ */

enum xm_status
xm_shape_all_gather(struct xm_infer *i)
{
    uint32_t at;
    const int64_t size = i->attr->collective.size;
    i->out[0].type = *xm_infer_type(i, 0);
    struct xm_shape *s = &i->out[0].type.shape;
    XM_TRY(xm_infer_axis(i, i->attr->collective.axis, s->rank, &at));
    if (size < 1 || !xm_dim_is_const(s->dim[at]) || s->dim[at].n > size)
        return xm_shape_fail(i,
                             "a slice of %lld elements does not fit a dimension of %lld",
                             (long long)s->dim[at].n, (long long)size);
    s->dim[at] = xm_dim_const(size);
    return XM_OK;
}

/* The result is a number that no node reads; it exists because every op has a result. */
enum xm_status
xm_shape_send(struct xm_infer *i)
{
    if (i->attr->collective.peer < 0 || i->attr->collective.peer >= XM_MOST_RANKS)
        return xm_shape_fail(i, "there is no rank %lld",
                             (long long)i->attr->collective.peer);
    i->out[0].type = (struct xm_type){XM_F32, {.rank = 0}};
    return XM_OK;
}

/* Operand 0: the dimensions of the value that another rank sends. Result: that value. */
enum xm_status
xm_shape_receive(struct xm_infer *i)
{
    struct xm_shape s = {.rank = 0};
    if (i->attr->collective.peer < 0 || i->attr->collective.peer >= XM_MOST_RANKS)
        return xm_shape_fail(i, "there is no rank %lld",
                             (long long)i->attr->collective.peer);
    XM_TRY(xm_infer_dims(i, 0, s.dim, XM_MAX_RANK, &s.rank));
    i->out[0].type = (struct xm_type){i->attr->collective.element, s};
    return XM_OK;
}
