/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions of ops that select by index, and of ops that make indices.
 *
 *     slice x[past + tokens] from past to past + tokens   ->  x[tokens]
 *     range past, past + tokens, 1                        ->  [tokens]
 *
 * The size of a slice of a symbolic dimension is exact if its bounds are provably inside the
 * dimension. Symbols count as >= 0, a dimension that is sliced as >= 1, and symbolic bounds as
 * inside. Otherwise the size is a fresh symbol.
 */
#include <stdlib.h>

#include "transformations/graph/poly.h"
#include "transformations/graph/shape.h"

/* ---- bounds of a slice ------------------------------------------------------------- */

/* The least value d can have. */
static int64_t
lower_bound(struct xm_dim d)
{
    int64_t least = 0;
    if (!d.poly)
        return d.n;
    for (uint32_t j = 0; j < d.poly->n; j++) {
        if (d.poly->term[j].coefficient < 0)
            return 1;
        if (d.poly->term[j].degree == 0)
            least = d.poly->term[j].coefficient;
    }
    return least > 1 ? least : 1;
}

enum sign { NOT_NEGATIVE, NEGATIVE, EITHER };

static enum sign
sign_of(struct xm_dim d)
{
    bool plus = false, minus = false;
    if (!d.poly)
        return d.n < 0 ? NEGATIVE : NOT_NEGATIVE;
    for (uint32_t j = 0; j < d.poly->n; j++) {
        if (d.poly->term[j].degree == 0)
            continue;
        plus = plus || d.poly->term[j].coefficient > 0;
        minus = minus || d.poly->term[j].coefficient < 0;
    }
    return plus && minus ? EITHER : minus ? NEGATIVE : NOT_NEGATIVE;
}

static int64_t
clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Makes a bound of a slice a position in [0, d] (forward) or [-1, d - 1] (backward). False: it is
 * not known. */
static bool
place_bound(struct xm_dim_pool *p, struct xm_dim b, struct xm_dim d, bool forward,
            struct xm_dim *out)
{
    struct xm_dim last = forward ? d : xm_dim_sub(p, d, xm_dim_const(1));
    int64_t low = forward ? 0 : -1;
    if (xm_dim_is_const(b) && xm_dim_is_const(d)) {
        int64_t n = b.n < 0 ? (b.n < -d.n ? low : b.n + d.n) : b.n;
        *out = xm_dim_const(clamp(n, low, last.n));
        return true;
    }
    /* a bound far outside is clamped; else it must provably be inside */
    if (xm_dim_is_const(b)) {
        const int64_t far = INT32_MAX;
        if (b.n >= far || b.n < -far) {
            *out = b.n > 0 ? last : xm_dim_const(low);
            return true;
        }
        *out = b.n < 0 ? xm_dim_add(p, d, b) : b;
        return b.n < 0 ? -b.n <= lower_bound(d) : b.n <= lower_bound(d) - !forward;
    }
    *out = sign_of(b) == NEGATIVE ? xm_dim_add(p, d, b) : b;
    return sign_of(b) != EITHER && !xm_dim_is_unknown(b);
}

/* The number of steps from begin to end: ceil((end - begin) / step), at least 0. */
static struct xm_dim
count_steps(struct xm_dim_pool *p, struct xm_dim begin, struct xm_dim end, int64_t step)
{
    struct xm_dim length =
        step > 0 ? xm_dim_sub(p, end, begin) : xm_dim_sub(p, begin, end);
    uint64_t size = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    bool exact;
    if (xm_dim_is_const(length)) {
        uint64_t n = length.n > 0 ? (uint64_t)length.n : 0;
        return xm_dim_const((int64_t)(n / size + (n % size != 0)));
    }
    if (sign_of(length) == NEGATIVE)
        return xm_dim_const(0);
    if (size > INT64_MAX)
        return xm_dim_fresh(p);
    return xm_dim_div(p, length, xm_dim_const((int64_t)size), &exact);
}

/* A slice along one dimension; no_begin, no_end: it reaches to that end. */
struct cut {
    struct xm_dim begin, end, step;
    bool no_begin, no_end;
};

/* Slices dimension `at` of operand 0, of size d; *out is the new size. */
static enum xm_status
slice_dim(struct xm_infer *i, const struct cut *c, uint32_t at, struct xm_dim d,
          struct xm_slice_part *s, struct xm_dim *out)
{
    struct xm_dim begin, end;
    bool forward = !xm_dim_is_const(c->step) || c->step.n > 0;
    struct xm_dim far_begin = xm_dim_const(forward ? 0 : INT64_MAX);
    struct xm_dim far_end = xm_dim_const(forward ? INT64_MAX : INT64_MIN);
    s->first[at] = xm_dim_const(-1);
    s->step[at] = c->step.n;
    if (xm_dim_is(c->step, 0))
        return xm_shape_fail(i, "a step of the slice is 0");
    if (xm_dim_is_const(c->step) &&
        place_bound(i->dims, c->no_begin ? far_begin : c->begin, d, forward, &begin) &&
        place_bound(i->dims, c->no_end ? far_end : c->end, d, forward, &end)) {
        s->first[at] = begin;
        *out = count_steps(i->dims, begin, end, c->step.n);
    } else {
        *out = xm_dim_fresh(i->dims);
    }
    return XM_OK;
}

/* Sets the content of a sliced vector of n elements. */
static enum xm_status
slice_content(struct xm_infer *i, const struct xm_slice_part *s, struct xm_dim n)
{
    const struct xm_content *c = xm_infer_content(i, 0);
    struct xm_dim e[XM_MAX_CONTENT];
    if (!c || !xm_dim_is_const(s->first[0]) || !xm_dim_is_const(n) || n.n > c->n)
        return XM_OK;
    for (int64_t j = 0; j < n.n; j++)
        e[j] = c->e[s->first[0].n +
                    j * s->step[0]]; /* first and n were clamped, so this is inside */
    return xm_content_set(i, 0, e, (uint32_t)n.n);
}

/* ---- slice ------------------------------------------------------------------------- */

static enum xm_status
slice_axis(struct xm_infer *i, const struct xm_content *axes, uint32_t j, uint32_t *out)
{
    if (axes && (j >= axes->n || !xm_dim_is_const(axes->e[j])))
        return xm_shape_fail(i, "operand 4, the axes, does not fit the bounds");
    return xm_infer_axis(i, axes ? axes->e[j].n : (int64_t)j, xm_infer_shape(i, 0)->rank,
                         out);
}

static enum xm_status
plan_slice(struct xm_infer *i, struct xm_slice_part *s)
{
    const struct xm_content *axes = xm_infer_content(i, 4);
    struct xm_dim begin[XM_MAX_RANK], end[XM_MAX_RANK], step[XM_MAX_RANK];
    uint32_t n, n_end, n_step, axis, seen = 0;
    i->out[0].type = *xm_infer_type(i, 0);
    XM_TRY(xm_infer_dims(i, 1, begin, XM_MAX_RANK, &n));
    XM_TRY(xm_infer_dims(i, 2, end, XM_MAX_RANK, &n_end));
    XM_TRY(xm_infer_dims(i, 3, step, XM_MAX_RANK, &n_step));
    if (n_end != n || n_step != n)
        return xm_shape_fail(i, "operands 1, 2 and 3 have %u, %u and %u elements", n,
                             n_end, n_step);
    if (xm_infer_has(i, 4) && !axes)
        return xm_shape_fail(i, "operand 4, the axes, must be constant");
    for (uint32_t j = 0; j < n; j++) {
        struct cut c = {begin[j], end[j], step[j], false, false};
        XM_TRY(slice_axis(i, axes, j, &axis));
        if (seen & (1u << axis))
            return xm_shape_fail(i, "axis %u is named twice", axis);
        seen |= 1u << axis;
        struct xm_dim *d = &i->out[0].type.shape.dim[axis];
        XM_TRY(slice_dim(i, &c, axis, *d, s, d));
        if (i->out[0].type.shape.rank == 1)
            XM_TRY(slice_content(i, s, *d));
    }
    return XM_OK;
}

/* ---- strided slice ----------------------------------------------------------------- */

/* Parses a mask such as "0,1,1": bit j is set if the j-th number is not 0. */
static uint32_t
parse_mask(const char *text)
{
    uint32_t mask = 0;
    for (uint32_t j = 0; text && *text && j < 32; j++) {
        char *end;
        if (strtol(text, &end, 10) != 0)
            mask |= 1u << j;
        if (end == text)
            break;
        text = *end == ',' ? end + 1 : end;
    }
    return mask;
}

enum { MAX_SPEC = 2 * XM_MAX_RANK };

struct strided {
    struct xm_dim begin[MAX_SPEC], end[MAX_SPEC], step[MAX_SPEC];
    uint32_t n;
    uint32_t begin_mask, end_mask, new_axis, shrink, ellipsis;
};

static enum xm_status
strided_read(struct xm_infer *i, struct strided *s)
{
    uint32_t n_end, n_step;
    XM_TRY(xm_infer_dims(i, 1, s->begin, MAX_SPEC, &s->n));
    XM_TRY(xm_infer_dims(i, 2, s->end, MAX_SPEC, &n_end));
    n_step = s->n;
    if (xm_infer_has(i, 3))
        XM_TRY(xm_infer_dims(i, 3, s->step, MAX_SPEC, &n_step));
    else
        for (uint32_t j = 0; j < s->n; j++)
            s->step[j] = xm_dim_const(1);
    if (n_end != s->n || n_step != s->n)
        return xm_shape_fail(i, "operands 1, 2 and 3 have %u, %u and %u elements", s->n,
                             n_end, n_step);
    s->begin_mask = parse_mask(i->attr->strided_slice.begin_mask);
    s->end_mask = parse_mask(i->attr->strided_slice.end_mask);
    s->new_axis = parse_mask(i->attr->strided_slice.new_axis_mask);
    s->shrink = parse_mask(i->attr->strided_slice.shrink_axis_mask);
    s->ellipsis = parse_mask(i->attr->strided_slice.ellipsis_mask);
    return XM_OK;
}

/* Selects the element at begin[j] of a dimension, which the result does not have. */
static enum xm_status
shrink_dim(struct xm_infer *i, const struct strided *s, uint32_t j, uint32_t from,
           struct xm_slice_part *slice)
{
    struct xm_dim d = xm_infer_shape(i, 0)->dim[from];
    const struct xm_content *c = xm_infer_content(i, 0);
    struct xm_dim at = s->begin[j];
    if (s->begin_mask & (1u << j))
        at = xm_dim_const(0);
    slice->first[from] = at;
    if (!xm_dim_is_const(at) || !xm_dim_is_const(d))
        return XM_OK;
    if (at.n < -d.n || at.n >= d.n)
        return xm_shape_fail(i, "index %lld is outside a dimension of %lld",
                             (long long)at.n, (long long)d.n);
    at.n += at.n < 0 ? d.n : 0;
    slice->first[from] = at;
    if (!c || xm_infer_shape(i, 0)->rank != 1)
        return XM_OK;
    return xm_content_set(i, 0, &c->e[at.n], 1);
}

/* The number of dimensions that an ellipsis at entry j of the specification stands for. */
static uint32_t
ellipsis_length(const struct strided *s, uint32_t j, uint32_t left)
{
    uint32_t taken = 0;
    for (uint32_t k = j + 1; k < s->n; k++)
        taken += !(s->new_axis & (1u << k));
    return left > taken ? left - taken : 0;
}

static enum xm_status
strided_one(struct xm_infer *i, const struct strided *s, uint32_t j, uint32_t from,
            struct xm_shape *out, struct xm_slice_part *slice)
{
    uint32_t bit = 1u << j;
    struct cut c = {s->begin[j], s->end[j], s->step[j], s->begin_mask & bit,
                    s->end_mask & bit};
    struct xm_dim *d = &out->dim[out->rank];
    if (s->shrink & bit)
        return shrink_dim(i, s, j, from, slice);
    XM_TRY(slice_dim(i, &c, from, xm_infer_shape(i, 0)->dim[from], slice, d));
    if (xm_infer_shape(i, 0)->rank == 1)
        XM_TRY(slice_content(i, slice, *d));
    slice->from[out->rank++] = (int)from;
    return XM_OK;
}

/* Keeps dimension `from` of operand 0 as it is. */
static void
keep_dim(const struct xm_infer *i, uint32_t from, struct xm_shape *out,
         struct xm_slice_part *slice)
{
    slice->from[out->rank] = (int)from;
    out->dim[out->rank++] = xm_infer_shape(i, 0)->dim[from];
}

static enum xm_status
plan_strided_slice(struct xm_infer *i, struct xm_slice_part *slice)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    struct strided s;
    struct xm_shape out = {0};
    uint32_t from = 0;
    XM_TRY(strided_read(i, &s));
    for (uint32_t j = 0; j < s.n; j++) {
        uint32_t bit = 1u << j;
        uint32_t copied = s.ellipsis & bit ? ellipsis_length(&s, j, in->rank - from) : 0;
        if (out.rank + copied + 1 > XM_MAX_RANK + 1 ||
            (out.rank == XM_MAX_RANK && !(s.ellipsis & bit) && !(s.shrink & bit)))
            return xm_shape_fail(i, "the result would have a rank above %d", XM_MAX_RANK);
        if (s.ellipsis & bit) {
            while (copied--)
                keep_dim(i, from++, &out, slice);
        } else if (s.new_axis & bit) {
            slice->from[out.rank] = -1;
            out.dim[out.rank++] = xm_dim_const(1);
        } else if (from == in->rank) {
            return xm_shape_fail(i,
                                 "operand 1 has more elements than operand 0 dimensions");
        } else {
            XM_TRY(strided_one(i, &s, j, from++, &out, slice));
        }
    }
    if (out.rank + in->rank - from > XM_MAX_RANK)
        return xm_shape_fail(i, "the result would have a rank above %d", XM_MAX_RANK);
    while (from < in->rank)
        keep_dim(i, from++, &out, slice);
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, out};
    if (out.rank > 1)
        i->out[0].content = (struct xm_content){0};
    return XM_OK;
}

enum xm_status
xm_infer_slice_part(struct xm_infer *i, struct xm_slice_part *s)
{
    for (uint32_t d = 0; d < XM_MAX_RANK; d++) {
        s->first[d] = xm_dim_const(0);
        s->step[d] = 1;
        s->from[d] = (int)d;
    }
    return i->op == XM_OP_SLICE ? plan_slice(i, s) : plan_strided_slice(i, s);
}

enum xm_status
xm_shape_slice(struct xm_infer *i)
{
    struct xm_slice_part s;
    return xm_infer_slice_part(i, &s);
}

/* ---- gather ------------------------------------------------------------------------ */

static enum xm_status
gather_content(struct xm_infer *i)
{
    const struct xm_content *data = xm_infer_content(i, 0), *ids = xm_infer_content(i, 1);
    struct xm_dim e[XM_MAX_CONTENT];
    if (!data || !ids || xm_infer_shape(i, 0)->rank != 1 || i->out[0].type.shape.rank > 1)
        return XM_OK;
    for (uint32_t j = 0; j < ids->n; j++) {
        if (!xm_dim_is_const(ids->e[j]))
            return XM_OK;
        int64_t at = ids->e[j].n < 0 ? ids->e[j].n + data->n : ids->e[j].n;
        if (at < 0 || at >= data->n)
            return xm_shape_fail(i, "index %lld is outside a vector of %u",
                                 (long long)ids->e[j].n, data->n);
        e[j] = data->e[at];
    }
    return xm_content_set(i, 0, e, ids->n);
}

enum xm_status
xm_shape_gather(struct xm_infer *i)
{
    const struct xm_shape *data = xm_infer_shape(i, 0), *ids = xm_infer_shape(i, 1);
    struct xm_shape s = {0};
    int64_t axis_value;
    uint32_t axis, batch;
    XM_TRY(xm_infer_int(i, 2, &axis_value));
    XM_TRY(xm_infer_axis(i, axis_value, data->rank, &axis));
    if (i->attr->gather.batch_dims < -(int64_t)ids->rank ||
        i->attr->gather.batch_dims > (int64_t)ids->rank)
        return xm_shape_fail(i, "batch_dims %lld is outside the rank of operand 1",
                             (long long)i->attr->gather.batch_dims);
    batch = (uint32_t)(i->attr->gather.batch_dims +
                       (i->attr->gather.batch_dims < 0 ? ids->rank : 0));
    if (batch > axis)
        return xm_shape_fail(i, "batch_dims %u is above the axis %u", batch, axis);
    if (data->rank - 1 + ids->rank - batch > XM_MAX_RANK)
        return xm_shape_fail(i, "the result would have a rank above %d", XM_MAX_RANK);
    for (uint32_t j = 0; j < axis; j++)
        s.dim[s.rank++] = data->dim[j];
    for (uint32_t j = 0; j < batch; j++)
        if (!xm_dim_merge(data->dim[j], ids->dim[j], &s.dim[j]))
            return xm_shape_fail(i, "operands 0 and 1 differ in batch dimension %u", j);
    for (uint32_t j = batch; j < ids->rank; j++)
        s.dim[s.rank++] = ids->dim[j];
    for (uint32_t j = axis + 1; j < data->rank; j++)
        s.dim[s.rank++] = data->dim[j];
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, s};
    return gather_content(i);
}

enum xm_status
xm_shape_gather_elements(struct xm_infer *i)
{
    const struct xm_shape *data = xm_infer_shape(i, 0), *ids = xm_infer_shape(i, 1);
    struct xm_dim d;
    uint32_t axis;
    XM_TRY(xm_infer_axis(i, i->attr->axis.axis, data->rank, &axis));
    XM_TRY(xm_infer_rank(i, 1, data->rank));
    for (uint32_t j = 0; j < data->rank; j++)
        if (j != axis && !xm_dim_merge(data->dim[j], ids->dim[j], &d))
            return xm_shape_fail(i, "operands 0 and 1 differ in dimension %u", j);
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, *ids};
    return XM_OK;
}

/* ---- making indices ---------------------------------------------------------------- */

static enum xm_status
check_integer(struct xm_infer *i, enum xm_element e)
{
    if (!xm_element_is_int(e))
        return xm_shape_fail(i, "the result must be of an integer type, not %s",
                             xm_element_text(e));
    return XM_OK;
}

enum xm_status
xm_shape_shape_of(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    XM_TRY(check_integer(i, i->attr->convert.element));
    i->out[0].type = (struct xm_type){i->attr->convert.element,
                                      {.rank = 1, .dim = {xm_dim_const(in->rank)}}};
    return xm_content_set(i, 0, in->dim, in->rank);
}

static enum xm_status
range_content(struct xm_infer *i, struct xm_dim start, struct xm_dim step,
              struct xm_dim n)
{
    struct xm_dim e[XM_MAX_CONTENT];
    if (!xm_dim_is_const(n) || n.n < 0 || n.n > XM_MAX_CONTENT)
        return XM_OK;
    for (int64_t j = 0; j < n.n; j++) {
        e[j] = start;
        start = xm_dim_add(i->dims, start, step);
    }
    return xm_content_set(i, 0, e, (uint32_t)n.n);
}

enum xm_status
xm_shape_range(struct xm_infer *i)
{
    const struct xm_content *start = xm_infer_content(i, 0),
                            *stop = xm_infer_content(i, 1),
                            *step = xm_infer_content(i, 2);
    struct xm_dim n;
    for (uint32_t k = 0; k < 3; k++)
        if (xm_infer_shape(i, k)->rank > 1 ||
            (xm_infer_shape(i, k)->rank == 1 &&
             !xm_dim_is(xm_infer_shape(i, k)->dim[0], 1)))
            return xm_shape_fail(i, "operand %u must be a scalar", k);
    i->out[0].type = (struct xm_type){i->attr->convert.element, {.rank = 1}};
    if (step && xm_dim_is(step->e[0], 0))
        return xm_shape_fail(i, "the step is 0");
    if (!start || !stop || !step || !xm_dim_is_const(step->e[0])) {
        i->out[0].type.shape.dim[0] = xm_dim_fresh(i->dims);
        return XM_OK;
    }
    n = count_steps(i->dims, start->e[0], stop->e[0], step->e[0].n);
    i->out[0].type.shape.dim[0] = n;
    return xm_element_is_int(i->out[0].type.element)
               ? range_content(i, start->e[0], step->e[0], n)
               : XM_OK;
}

enum xm_status
xm_shape_one_hot(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    const struct xm_content *depth = xm_infer_content(i, 1);
    struct xm_shape s = {.rank = in->rank + 1};
    uint32_t axis;
    if (s.rank > XM_MAX_RANK)
        return xm_shape_fail(i, "the result would have a rank above %d", XM_MAX_RANK);
    XM_TRY(xm_infer_same_element(i, 2, 3, &i->out[0].type.element));
    XM_TRY(xm_infer_axis(i, i->attr->axis.axis, s.rank, &axis));
    for (uint32_t j = 0, from = 0; j < s.rank; j++)
        if (j != axis)
            s.dim[j] = in->dim[from++];
    s.dim[axis] = depth && depth->n == 1 ? depth->e[0] : xm_dim_fresh(i->dims);
    i->out[0].type.shape = s;
    return XM_OK;
}
