/* SPDX-License-Identifier: Apache-2.0
 *
 * References of the ops that move elements. Most are one strided copy:
 *
 *     out[index] = in[offset + index . stride]
 *
 * and differ only in offset and strides. Scatters combine updates with the elements of the result.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "transformations/graph/evaluate_ops.h"
#include "transformations/graph/shape.h"

/* Makes the strided copy, after checking that every index of the result lies inside operand 0. */
static enum xm_status
copy_strided(struct xm_eval_call *c, int64_t offset, const int64_t *stride)
{
    struct xm_tensor *out = c->out[0];
    const struct xm_tensor *x = c->in[0];
    int64_t low = offset, high = offset;
    struct xm_walk w;
    if (out->n == 0)
        return XM_OK;
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t reach = (out->dim[i] - 1) * stride[i];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    if (low < 0 || (uint64_t)high >= x->n)
        return xm_fail(c->err, XM_INVALID,
                       "it reads outside its operand of %" PRIu64 " elements", x->n);
    xm_walk_begin(&w, out->rank, out->dim);
    xm_walk_add(&w, offset, stride);
    xm_walk_copy(&w, x, out);
    return XM_OK;
}

enum xm_status
xm_eval_copy(struct xm_eval_call *c)
{
    if (c->in[0]->n != c->out[0]->n)
        return xm_fail(c->err, XM_INVALID,
                       "its operand has %" PRIu64 " elements, its result %" PRIu64,
                       c->in[0]->n, c->out[0]->n);
    xm_tensor_move(c->out[0], 0, c->in[0], 0, c->out[0]->n);
    return XM_OK;
}

/* data, order. An empty order reverses the dimensions. */
enum xm_status
xm_eval_transpose(struct xm_eval_call *c)
{
    int64_t own[XM_MAX_RANK], stride[XM_MAX_RANK];
    const struct xm_tensor *x = c->in[0], *order = c->in[1];
    xm_tensor_strides(x, own);
    for (uint32_t i = 0; i < x->rank; i++)
        stride[i] = own[order->n ? order->i[i] : x->rank - 1 - i];
    return copy_strided(c, 0, stride);
}

/* Copies between `whole` and n parts of it along an axis: from `whole` to the parts or, with
 * `join`, from the parts to `whole`. */
static void
copy_parts(const struct xm_tensor *whole, const struct xm_tensor *const *part, uint32_t n,
           uint32_t axis, bool join)
{
    const uint64_t width = xm_tensor_width(whole), outer = xm_tensor_size(whole, 0, axis);
    const uint64_t row = xm_tensor_size(whole, axis, whole->rank) * width;
    uint8_t *at = xm_tensor_raw(whole);
    for (uint32_t i = 0; i < n && whole->n > 0; i++) {
        const uint64_t bytes = part[i]->n / outer * width;
        for (uint64_t o = 0; o < outer; o++) {
            uint8_t *in_whole = at + o * row,
                    *in_part = xm_tensor_raw(part[i]) + o * bytes;
            memcpy(join ? in_whole : in_part, join ? in_part : in_whole, bytes);
        }
        at += bytes;
    }
}

enum xm_status
xm_eval_concat(struct xm_eval_call *c)
{
    copy_parts(c->out[0], c->in, c->node->n_in,
               xm_eval_axis(c->node->attr.axis.axis, c->out[0]->rank), true);
    return XM_OK;
}

enum xm_status
xm_eval_split(struct xm_eval_call *c)
{
    copy_parts(c->in[0], (const struct xm_tensor *const *)c->out, c->node->n_out,
               xm_eval_axis(c->in[1]->i[0], c->in[0]->rank), false);
    return XM_OK;
}

/* xm_infer_slice_part computes which elements are read, whatever masks there are. */
enum xm_status
xm_eval_slice(struct xm_eval_call *c)
{
    int64_t own[XM_MAX_RANK], stride[XM_MAX_RANK], offset = 0;
    struct xm_slice_part s;
    const struct xm_tensor *x = c->in[0], *out = c->out[0];
    XM_TRY(xm_infer_slice_part(c->infer, &s));
    if (out->n == 0)
        return XM_OK;
    xm_tensor_strides(x, own);
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!xm_dim_is_const(s.first[i]))
            return xm_fail(c->err, XM_INVALID, "the bounds of the slice are not known");
        offset += s.first[i].n * own[i];
    }
    for (uint32_t i = 0; i < out->rank; i++)
        stride[i] =
            s.from[i] < 0 || out->dim[i] == 1 ? 0 : s.step[s.from[i]] * own[s.from[i]];
    return copy_strided(c, offset, stride);
}

/* ---- repeating --------------------------------------------------------------------- */

/* Broadcast with explicit mapping: dimension i of the operand becomes dimension mapping[i] of the
 * result. */
static enum xm_status
broadcast_explicit(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0], *mapping = c->in[2];
    int64_t own[XM_MAX_RANK], stride[XM_MAX_RANK] = {0};
    xm_tensor_strides(x, own);
    for (uint32_t i = 0; i < x->rank; i++)
        stride[xm_eval_axis(mapping->i[i], c->out[0]->rank)] =
            x->dim[i] == 1 ? 0 : own[i];
    return copy_strided(c, 0, stride);
}

enum xm_status
xm_eval_broadcast(struct xm_eval_call *c)
{
    struct xm_walk w;
    if (c->node->attr.broadcast.mode == XM_BROADCAST_EXPLICIT)
        return broadcast_explicit(c);
    xm_walk_operands(&w, c, 1);
    xm_walk_copy(&w, c->in[0], c->out[0]);
    return XM_OK;
}

/* Walks each dimension as two: the repeats, with stride 0, and the dimension itself. */
enum xm_status
xm_eval_tile(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0], *out = c->out[0];
    int64_t own[XM_MAX_RANK], dim[XM_WALK_RANK], stride[XM_WALK_RANK];
    struct xm_walk w;
    if (out->n == 0)
        return XM_OK;
    uint32_t skip = out->rank - x->rank;
    xm_tensor_strides(x, own);
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t size = i < skip ? 1 : x->dim[i - skip];
        dim[2 * i] = out->dim[i] / size;
        dim[2 * i + 1] = size;
        stride[2 * i] = 0;
        stride[2 * i + 1] = i < skip ? 0 : own[i - skip];
    }
    xm_walk_begin(&w, 2 * out->rank, dim);
    xm_walk_add(&w, 0, stride);
    xm_walk_copy(&w, x, c->out[0]);
    return XM_OK;
}

/* ---- by element indices ------------------------------------------------------------ */

/* Starts a walk over `indices` that keeps the offset in x of an index in all dimensions but
 * `axis`. */
static enum xm_status
walk_elements(const struct xm_eval_call *c, const struct xm_tensor *x,
              const struct xm_tensor *indices, uint32_t axis, struct xm_walk *w,
              int64_t *axis_stride)
{
    int64_t stride[XM_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i != axis && indices->dim[i] > x->dim[i])
            return xm_fail(c->err, XM_INVALID,
                           "dimension %u has %" PRId64 " indices for %" PRId64
                           " elements",
                           i, indices->dim[i], x->dim[i]);
    }
    xm_tensor_strides(x, stride);
    *axis_stride = stride[axis];
    stride[axis] = 0;
    xm_walk_begin(w, indices->rank, indices->dim);
    xm_walk_add(w, 0, stride);
    return XM_OK;
}

enum xm_status
xm_eval_gather_elements(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0], *indices = c->in[1];
    struct xm_walk w;
    int64_t axis_stride, index;
    uint64_t done = 0;
    const uint32_t axis = xm_eval_axis(c->node->attr.axis.axis, x->rank);
    XM_TRY(walk_elements(c, x, indices, axis, &w, &axis_stride));
    while (xm_walk_next(&w)) {
        XM_TRY(xm_eval_index(c, indices->i[done], x->dim[axis], &index));
        xm_tensor_move(c->out[0], done++, x, (uint64_t)(w.at[0] + index * axis_stride),
                       1);
    }
    return XM_OK;
}

double
xm_eval_combine_floats(int reduction, double a, double b)
{
    switch (reduction) {
    case XM_REDUCTION_NONE:
        return b;
    case XM_REDUCTION_PROD:
        return a * b;
    case XM_REDUCTION_MIN:
        return b < a ? b : a;
    case XM_REDUCTION_MAX:
        return b > a ? b : a;
    default:
        return a + b;
    }
}

int64_t
xm_eval_combine_ints(int reduction, int64_t a, int64_t b)
{
    switch (reduction) {
    case XM_REDUCTION_NONE:
        return b;
    case XM_REDUCTION_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case XM_REDUCTION_MIN:
        return b < a ? b : a;
    case XM_REDUCTION_MAX:
        return b > a ? b : a;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

void
xm_eval_land(int reduction, struct xm_tensor *out, uint64_t at,
             const struct xm_tensor *updates, uint64_t from)
{
    if (out->f)
        out->f[at] = (float)xm_eval_combine_floats(reduction, (double)out->f[at],
                                                   (double)updates->f[from]);
    else
        out->i[at] = xm_eval_combine_ints(reduction, out->i[at], updates->i[from]);
}

/* Divides sums by their counts; means of integers are rounded down. */
static void
finish_means(struct xm_tensor *out, const uint32_t *count)
{
    for (uint64_t i = 0; i < out->n; i++) {
        if (count[i] < 2)
            continue;
        if (out->f) {
            out->f[i] /= (float)count[i];
        } else {
            int64_t n = count[i];
            out->i[i] = out->i[i] / n - (out->i[i] % n < 0);
        }
    }
}

/* Scatters along an axis. count[i]: how many values element i is made of; if 0 the next value
 * replaces the element. */
static enum xm_status
scatter(struct xm_eval_call *c, uint32_t axis, uint32_t *count)
{
    const int reduction = c->node->attr.scatter.reduction;
    struct xm_walk w;
    int64_t axis_stride, index;
    uint64_t done = 0;
    const struct xm_tensor *indices = c->in[1];
    XM_TRY(walk_elements(c, c->in[0], indices, axis, &w, &axis_stride));
    while (xm_walk_next(&w)) {
        XM_TRY(xm_eval_index(c, indices->i[done], c->in[0]->dim[axis], &index));
        const uint64_t at = (uint64_t)(w.at[0] + index * axis_stride);
        xm_eval_land(count[at] ? reduction : XM_REDUCTION_NONE, c->out[0], at, c->in[2],
                     done++);
        count[at]++;
    }
    if (reduction == XM_REDUCTION_MEAN)
        finish_means(c->out[0], count);
    xm_tensor_wrap(c->out[0]);
    return XM_OK;
}

enum xm_status
xm_eval_scatter_elements(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0];
    uint32_t *count = xm_calloc(x->n, sizeof(*count));
    if (!count)
        return xm_eval_no_memory(c->err);
    for (uint64_t i = 0; i < x->n; i++)
        count[i] = c->node->attr.scatter.use_init_val;
    xm_tensor_move(c->out[0], 0, x, 0, x->n);
    enum xm_status status = scatter(c, xm_eval_axis(c->in[3]->i[0], x->rank), count);
    xm_free(count);
    return status;
}

/* ---- sources ----------------------------------------------------------------------- */

enum xm_status
xm_eval_shape_of(struct xm_eval_call *c)
{
    const struct xm_shape *s = &xm_in(c->node, 0)->type.shape;
    struct xm_tensor *out = c->out[0];
    for (uint64_t i = 0; i < out->n; i++)
        out->i[i] = c->in[0] ? c->in[0]->dim[i] : s->dim[i].n;
    return XM_OK;
}

static double
scalar_of(const struct xm_tensor *t)
{
    return t->f ? (double)t->f[0] : (double)t->i[0];
}

/* Operands start, stop, step: start, start + step, … up to but excluding stop. */
enum xm_status
xm_eval_range(struct xm_eval_call *c)
{
    enum { MOST = 1 << 27 }; /* limits memory, because the operands may be any numbers */
    double start = scalar_of(c->in[0]), step = scalar_of(c->in[2]);
    double n = ceil((scalar_of(c->in[1]) - start) / step);
    if (!isfinite(n))
        return xm_fail(c->err, XM_INVALID, "a range by steps of %g has no end", step);
    if (n > MOST)
        return xm_fail(c->err, XM_INVALID,
                       "a range of %.0f elements, at most %d are possible", n, MOST);
    int64_t dim = n > 0 ? (int64_t)n : 0;
    if (!c->out[0])
        XM_TRY(
            xm_tensor_create(&c->out[0], c->node->attr.convert.element, 1, &dim, c->err));
    struct xm_tensor *out = c->out[0];
    bool ints = out->i && c->in[0]->i && c->in[2]->i;
    for (uint64_t i = 0; i < out->n; i++) {
        if (out->f)
            out->f[i] = (float)(start + (double)i * step);
        else if (ints)
            out->i[i] =
                (int64_t)((uint64_t)c->in[0]->i[0] + i * (uint64_t)c->in[2]->i[0]);
        else
            out->i[i] = (int64_t)(start + (double)i * step);
    }
    return XM_OK;
}
