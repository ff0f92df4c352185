/* SPDX-License-Identifier: Apache-2.0
 *
 * References of gather by single indices and by tuples of indices, of scatter by tuples, and of
 * non_zero.
 *
 *     gather:             out[b…, o…, i…, :] = x[b…, o…, ids[b…, i…], :]
 *     gather_nd:          out[b…, i…, :]  = x[b…, ids[b…, i…, 0], ids[b…, i…, 1], …, :]
 *     scatter_nd_update:  out[ids[i…], :] (+)= updates[i…, :]
 *     non_zero:           out[:, n]       = the index of the n-th element that is not zero
 */
#include <inttypes.h>

#include "transformations/graph/evaluate_ops.h"

/* Computes the offset in x, in elements, of a tuple of indices for dimensions `first` and
 * following. */
static enum xm_status
locate(const struct xm_eval_call *c, const struct xm_tensor *x, uint32_t first,
       const int64_t *tuple, uint32_t length, uint64_t *out)
{
    uint64_t at = 0;
    for (uint32_t d = 0; d < length; d++) {
        int64_t n = x->dim[first + d], index;
        XM_TRY(xm_eval_index(c, tuple[d], n, &index));
        at = at * (uint64_t)n + (uint64_t)index;
    }
    *out = at * xm_tensor_size(x, first + length, x->rank);
    return XM_OK;
}

/* The length of the tuples. */
static uint32_t
tuple_length(const struct xm_tensor *ids)
{
    return (uint32_t)ids->dim[ids->rank - 1];
}

/* Gathers: a tuple of `length` indices selects from dimensions `axis` and following of x. The first
 * `batch` dimensions are shared by x and ids. */
static enum xm_status
gather_tensor(struct xm_eval_call *c, uint32_t batch, uint32_t axis, uint32_t length)
{
    const struct xm_tensor *x = c->in[0], *ids = c->in[1];
    const uint64_t blocks = xm_tensor_size(x, 0, axis);
    const uint64_t outer = xm_tensor_size(x, batch, axis);
    const uint64_t part = xm_tensor_size(x, axis, x->rank);
    const uint64_t slice = xm_tensor_size(x, axis + length, x->rank);
    const uint64_t tuples = xm_tensor_size(ids, batch, ids->rank) / length;
    uint64_t at, done = 0;
    for (uint64_t b = 0; b < blocks; b++) {
        const int64_t *tuple = ids->i + b / outer * tuples * length;
        for (uint64_t t = 0; t < tuples; t++, tuple += length, done += slice) {
            XM_TRY(locate(c, x, axis, tuple, length, &at));
            xm_tensor_move(c->out[0], done, x, b * part + at, slice);
        }
    }
    return XM_OK;
}

/* Gathers rows or experts of a weight; only along its first dimension. */
static enum xm_status
gather_weight(struct xm_eval_call *c, int64_t axis)
{
    const struct xm_weight *w = &xm_in(c->node, 0)->node->attr.weight;
    const bool experts = w->rank == 3;
    if ((axis != 0 && axis != -(int64_t)w->rank) || w->rank < 2)
        return xm_fail(
            c->err, XM_UNSUPPORTED,
            "a stored weight can be gathered only along axis 0, found axis %" PRId64,
            axis);
    int64_t row, n = (int64_t)(experts ? w->experts : w->rows);
    float *to = c->out[0]->f;
    for (uint64_t i = 0; i < c->in[1]->n; i++) {
        XM_TRY(xm_eval_index(c, c->in[1]->i[i], n, &row));
        for (uint64_t r = 0; r < (experts ? w->rows : 1); r++, to += w->cols)
            xm_weight_row(w, experts ? (uint64_t)row : 0, experts ? r : (uint64_t)row,
                          to);
    }
    return XM_OK;
}

enum xm_status
xm_eval_gather(struct xm_eval_call *c)
{
    const int64_t batch = c->node->attr.gather.batch_dims, axis = c->in[2]->i[0];
    if (!c->in[0])
        return gather_weight(c, axis);
    return c->out[0]->n == 0 ? XM_OK
                             : gather_tensor(c, xm_eval_axis(batch, c->in[1]->rank),
                                             xm_eval_axis(axis, c->in[0]->rank), 1);
}

enum xm_status
xm_eval_gather_nd(struct xm_eval_call *c)
{
    const uint32_t batch = (uint32_t)c->node->attr.gather.batch_dims;
    return gather_tensor(c, batch, batch, tuple_length(c->in[1]));
}

enum xm_status
xm_eval_scatter_nd(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0], *ids = c->in[1], *updates = c->in[2];
    const uint32_t length = tuple_length(ids);
    uint64_t tuples = ids->n / length, slice = xm_tensor_size(x, length, x->rank);
    xm_tensor_move(c->out[0], 0, x, 0, x->n);
    for (uint64_t t = 0; t < tuples; t++) {
        uint64_t at = 0;
        XM_TRY(locate(c, x, 0, ids->i + t * length, length, &at));
        for (uint64_t i = 0; i < slice; i++)
            xm_eval_land(c->node->attr.scatter.reduction, c->out[0], at + i, updates,
                         t * slice + i);
    }
    xm_tensor_wrap(c->out[0]);
    return XM_OK;
}

static bool
is_zero(const struct xm_tensor *x, uint64_t i)
{
    return x->f ? x->f[i] == 0.0f : x->i[i] == 0;
}

/* The number of elements that are not zero is known only now, so the result is created here. */
enum xm_status
xm_eval_non_zero(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0];
    int64_t dim[2] = {x->rank, 0};
    for (uint64_t i = 0; i < x->n; i++)
        dim[1] += !is_zero(x, i);
    xm_tensor_destroy(c->out[0]);
    c->out[0] = NULL;
    XM_TRY(xm_tensor_create(&c->out[0], c->node->attr.convert.element, 2, dim, c->err));
    int64_t n = 0;
    for (uint64_t i = 0; i < x->n; i++) {
        uint64_t rest = i;
        if (is_zero(x, i))
            continue;
        for (uint32_t d = x->rank; d-- > 0; rest /= (uint64_t)x->dim[d])
            c->out[0]->i[d * dim[1] + n] = (int64_t)(rest % (uint64_t)x->dim[d]);
        n++;
    }
    return XM_OK;
}
