/* SPDX-License-Identifier: Apache-2.0
 *
 * References of ops that combine elements along axes: reductions, normalisation, softmax, top-k,
 * cumulative sums, one-hot. Sums of floats are in f64.
 */
#include <inttypes.h>
#include <math.h>

#include "transformations/graph/evaluate_ops.h"

/* x as [outer, n, inner], n being the size of an axis. */
struct fold {
    uint64_t outer, n, inner;
};

static struct fold
fold_at(const struct xm_tensor *x, int64_t wanted)
{
    const uint32_t axis = xm_eval_axis(wanted, x->rank);
    return (struct fold){xm_tensor_size(x, 0, axis), (uint64_t)x->dim[axis],
                         xm_tensor_size(x, axis + 1, x->rank)};
}

/* ---- reductions -------------------------------------------------------------------- */

/* Starts a walk over operand 0 with two arrays: the operand, and the reduced result (*left
 * elements), whose strides are 0 along reduced axes. */
static enum xm_status
walk_reduction(struct xm_eval_call *c, struct xm_walk *w, uint64_t *left)
{
    const struct xm_tensor *x = c->in[0], *axes = c->in[1];
    int64_t own[XM_MAX_RANK], stride[XM_MAX_RANK], n = 1;
    bool reduced[XM_MAX_RANK] = {false};
    for (uint64_t i = 0; i < axes->n; i++) {
        const int64_t axis = axes->i[i], rank = x->rank;
        /* the axes of mvn have not been checked before */
        if (axis < -rank || axis >= rank)
            return xm_fail(c->err, XM_INVALID,
                           "axis %" PRId64 " is outside a shape of rank %u", axis,
                           x->rank);
        reduced[xm_eval_axis(axis, x->rank)] = true;
    }
    for (uint32_t i = x->rank; i-- > 0;) {
        stride[i] = reduced[i] ? 0 : n;
        n *= reduced[i] || x->dim[i] == 0 ? 1 : x->dim[i];
    }
    *left = (uint64_t)n;
    xm_tensor_strides(x, own);
    xm_walk_begin(w, x->rank, x->dim);
    xm_walk_add(w, 0, own);
    xm_walk_add(w, 0, stride);
    return XM_OK;
}

static const struct reduction {
    int how;
    double first;
} reductions[XM_OP_COUNT] = {
    [XM_OP_REDUCE_SUM] = {XM_REDUCTION_SUM, 0.0},
    [XM_OP_REDUCE_MEAN] = {XM_REDUCTION_MEAN, 0.0},
    [XM_OP_REDUCE_PROD] = {XM_REDUCTION_PROD, 1.0},
    [XM_OP_REDUCE_MAX] = {XM_REDUCTION_MAX, -INFINITY},
    [XM_OP_REDUCE_MIN] = {XM_REDUCTION_MIN, INFINITY},
};

/* The value with which a reduction of integers begins: for max the least value of the type, for min
 * the greatest. */
static int64_t
first_int(const struct reduction *r, enum xm_element e)
{
    const uint32_t unused = 64 - xm_element_bits(e);
    const bool is_signed = xm_element_text(e)[0] == 'i';
    switch (r->how) {
    case XM_REDUCTION_MAX:
        return is_signed ? -(int64_t)((uint64_t)INT64_MAX >> unused) - 1 : 0;
    case XM_REDUCTION_MIN:
        return is_signed ? INT64_MAX >> unused : (int64_t)(UINT64_MAX >> unused);
    default:
        return (int64_t)r->first;
    }
}

static enum xm_status
reduce_floats(struct xm_eval_call *c, struct xm_walk *w, const struct reduction *r)
{
    struct xm_tensor *out = c->out[0];
    /* the mean of no elements is their sum, 0 */
    double count = out->n && c->in[0]->n ? (double)c->in[0]->n / (double)out->n : 1.0;
    double *acc = xm_calloc(out->n, sizeof(*acc));
    if (!acc)
        return xm_eval_no_memory(c->err);
    for (uint64_t i = 0; i < out->n; i++)
        acc[i] = r->first;
    while (xm_walk_next(w)) {
        double *to = &acc[w->at[1]];
        *to = xm_eval_combine_floats(r->how, *to, (double)c->in[0]->f[w->at[0]]);
    }
    for (uint64_t i = 0; i < out->n; i++)
        out->f[i] = (float)(r->how == XM_REDUCTION_MEAN ? acc[i] / count : acc[i]);
    xm_free(acc);
    return XM_OK;
}

static void
reduce_ints(struct xm_eval_call *c, struct xm_walk *w, const struct reduction *r)
{
    struct xm_tensor *out = c->out[0];
    const int64_t first = first_int(r, out->element);
    for (uint64_t i = 0; i < out->n; i++)
        out->i[i] = first;
    while (xm_walk_next(w)) {
        int64_t *acc = &out->i[w->at[1]];
        *acc = xm_eval_combine_ints(r->how, *acc, c->in[0]->i[w->at[0]]);
    }
    for (uint64_t i = 0; r->how == XM_REDUCTION_MEAN && c->in[0]->n && i < out->n; i++)
        out->i[i] /= (int64_t)(c->in[0]->n / out->n);
    xm_tensor_wrap(out);
}

enum xm_status
xm_eval_reduce(struct xm_eval_call *c)
{
    struct xm_walk w;
    uint64_t left;
    XM_TRY(walk_reduction(c, &w, &left));
    const struct reduction *r = &reductions[c->node->op];
    if (c->out[0]->f)
        return reduce_floats(c, &w, r);
    reduce_ints(c, &w, r);
    return XM_OK;
}

/* Adds x to the sums of its group or, if `mean` is not NULL, (x - mean)^2. */
static enum xm_status
add_moments(struct xm_eval_call *c, const double *mean, double *sum)
{
    struct xm_walk w;
    uint64_t left;
    XM_TRY(walk_reduction(c, &w, &left));
    while (xm_walk_next(&w)) {
        int64_t at = w.at[1];
        double v = (double)c->in[0]->f[w.at[0]];
        sum[at] += mean ? (v - mean[at]) * (v - mean[at]) : v;
    }
    return XM_OK;
}

/* Computes means and factors (1 / deviation) of the `left` groups of operand 0. */
static enum xm_status
mvn_moments(struct xm_eval_call *c, uint64_t left, double *mean, double *factor)
{
    const union xm_attr *a = &c->node->attr;
    double count = (double)c->in[0]->n / (double)left;
    double epsilon = (double)a->mvn.epsilon;
    XM_TRY(add_moments(c, NULL, mean));
    for (uint64_t i = 0; i < left; i++)
        mean[i] /= count;
    XM_TRY(add_moments(c, mean, factor));
    for (uint64_t i = 0; i < left; i++) {
        double variance = factor[i] / count;
        if (!a->mvn.scaled)
            factor[i] = 1.0;
        else if (a->mvn.epsilon_mode == XM_EPSILON_INSIDE_SQRT)
            factor[i] = 1.0 / sqrt(variance + epsilon);
        else
            factor[i] = 1.0 / (sqrt(variance) + epsilon);
    }
    return XM_OK;
}

enum xm_status
xm_eval_mvn(struct xm_eval_call *c)
{
    struct xm_walk w;
    uint64_t left;
    XM_TRY(walk_reduction(c, &w, &left));
    double *mean = xm_calloc(left, 2 * sizeof(*mean)), *factor = mean + left;
    if (!mean)
        return xm_eval_no_memory(c->err);
    enum xm_status status = mvn_moments(c, left, mean, factor);
    while (status == XM_OK && xm_walk_next(&w)) {
        int64_t from = w.at[0], at = w.at[1];
        double v = (double)c->in[0]->f[from];
        c->out[0]->f[from] = (float)((v - mean[at]) * factor[at]);
    }
    xm_free(mean);
    return status;
}

/* ---- along one axis ---------------------------------------------------------------- */

enum xm_status
xm_eval_softmax(struct xm_eval_call *c)
{
    const struct fold f = fold_at(c->in[0], c->node->attr.axis.axis);
    if (c->out[0]->n == 0)
        return XM_OK;
    xm_ref_softmax(c->in[0]->f, f.outer, f.n, f.inner, c->out[0]->f);
    return XM_OK;
}

enum xm_status
xm_eval_cum_sum(struct xm_eval_call *c)
{
    bool exclusive = c->node->attr.cum_sum.exclusive;
    struct xm_tensor *out = c->out[0];
    const bool has_axis = c->node->n_in > 1 && c->in[1];
    const struct fold f = fold_at(c->in[0], has_axis ? c->in[1]->i[0] : 0);
    for (uint64_t r = 0; out->n > 0 && r < f.outer * f.inner; r++) {
        uint64_t first = r / f.inner * f.n * f.inner + r % f.inner;
        double sum = 0.0;
        uint64_t int_sum = 0;
        for (uint64_t j = 0; j < f.n; j++) {
            uint64_t k = c->node->attr.cum_sum.reverse ? f.n - 1 - j : j;
            uint64_t at = first + k * f.inner;
            double before = sum;
            uint64_t int_before = int_sum;
            if (out->f) {
                sum += (double)c->in[0]->f[at];
                out->f[at] = (float)(exclusive ? before : sum);
            } else {
                int_sum += (uint64_t)c->in[0]->i[at];
                out->i[at] = (int64_t)(exclusive ? int_before : int_sum);
            }
        }
    }
    xm_tensor_wrap(out);
    return XM_OK;
}

/* Operands: indices, depth, on, off. A negative index counts from the end; an index outside the
 * depth sets no element to `on`. */
enum xm_status
xm_eval_one_hot(struct xm_eval_call *c)
{
    struct xm_tensor *out = c->out[0];
    const struct fold f = fold_at(out, c->node->attr.axis.axis);
    if (c->in[2]->n != 1 || c->in[3]->n != 1)
        return xm_fail(c->err, XM_INVALID,
                       "its on and off values must be single elements");
    for (uint64_t i = 0; i < out->n; i++) {
        uint64_t k = i / f.inner % f.n;
        int64_t index = c->in[0]->i[i / (f.inner * f.n) * f.inner + i % f.inner];
        bool on = (index < 0 ? index + (int64_t)f.n : index) == (int64_t)k;
        xm_tensor_move(out, i, c->in[on ? 2 : 3], 0, 1);
    }
    return XM_OK;
}

/* ---- top-k ------------------------------------------------------------------------- */

static void
sort_by_index(int32_t *ids, uint64_t k)
{
    for (uint64_t i = 1; i < k; i++) {
        int32_t id = ids[i];
        uint64_t j = i;
        for (; j > 0 && ids[j - 1] > id; j--)
            ids[j] = ids[j - 1];
        ids[j] = id;
    }
}

/* Top-k of one row: elements first, first + inner, … of operand 0. ids[k] is scratch. */
static void
topk_row(struct xm_eval_call *c, const struct fold *f, uint64_t first, uint64_t first_out,
         uint64_t k, int32_t *ids)
{
    const struct xm_tensor *x = c->in[0];
    const struct xm_ref_row row = {.f = x->f ? x->f + first : NULL,
                                   .i = x->i ? x->i + first : NULL,
                                   .n = f->n,
                                   .stride = f->inner};
    xm_ref_topk_ids(&row, k, !c->node->attr.topk.smallest, ids);
    if (c->node->attr.topk.sort == XM_SORT_INDEX)
        sort_by_index(ids, k);
    for (uint64_t j = 0; j < k; j++) {
        uint64_t to = first_out + j * f->inner;
        xm_tensor_move(c->out[0], to, x, first + (uint64_t)ids[j] * f->inner, 1);
        c->out[1]->i[to] = ids[j];
    }
}

enum xm_status
xm_eval_topk(struct xm_eval_call *c)
{
    const int64_t k = c->in[1]->i[0];
    const struct fold f = fold_at(c->in[0], c->node->attr.topk.axis);
    if (f.n > INT32_MAX)
        return xm_fail(c->err, XM_INVALID, "the best %" PRId64 " of %" PRIu64 " elements",
                       k, f.n);
    int32_t *ids = xm_malloc((size_t)k * sizeof(*ids));
    if (!ids)
        return xm_eval_no_memory(c->err);
    for (uint64_t r = 0; c->out[0]->n > 0 && r < f.outer * f.inner; r++)
        topk_row(c, &f, r / f.inner * f.n * f.inner + r % f.inner,
                 r / f.inner * (uint64_t)k * f.inner + r % f.inner, (uint64_t)k, ids);
    xm_free(ids);
    return XM_OK;
}
