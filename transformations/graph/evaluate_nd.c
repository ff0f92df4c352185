/* SPDX-License-Identifier: Apache-2.0
 *
 * References of gather and scatter by tuples of indices, and of non_zero.
 *
 *     gather_nd:          out[b…, i…, :]  = x[b…, ids[b…, i…, 0], ids[b…, i…, 1], …, :]
 *     scatter_nd_update:  out[ids[i…], :] (+)= updates[i…, :]
 *     non_zero:           out[:, n]       = the place of the n-th element that is not zero
 */
#include <inttypes.h>

#include "transformations/graph/evaluate_ops.h"

/* Where the tuple points in x from dimension `first` on, in elements. */
static enum xm_status
locate(const struct xm_eval_call *c, const struct xm_tensor *x, uint32_t first,
       const int64_t *tuple, uint32_t length, uint64_t *out)
{
    uint64_t at = 0;
    for (uint32_t d = 0; d < length; d++) {
        int64_t n = x->dim[first + d], index = tuple[d] < 0 ? tuple[d] + n : tuple[d];
        if (index < 0 || index >= n)
            return xm_fail(c->err, XM_INVALID,
                           "index %" PRId64 " for a dimension of %" PRId64, tuple[d], n);
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

enum xm_status
xm_eval_gather_nd(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0], *ids = c->in[1];
    const uint32_t batch = (uint32_t)c->node->attr.gather.batch_dims;
    const uint32_t length = tuple_length(ids);
    uint64_t batches = xm_tensor_size(ids, 0, batch), tuples = ids->n / length;
    uint64_t slice = xm_tensor_size(x, batch + length, x->rank);
    uint64_t part = xm_tensor_size(x, batch, x->rank);
    for (uint64_t t = 0; t < tuples; t++) { /* none, where there are no batches */
        uint64_t at = 0;
        XM_TRY(locate(c, x, batch, ids->i + t * length, length, &at));
        xm_tensor_move(c->out[0], t * slice, x, t / (tuples / batches) * part + at,
                       slice);
    }
    return XM_OK;
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
    return XM_OK;
}

static bool
is_zero(const struct xm_tensor *x, uint64_t i)
{
    return x->f ? x->f[i] == 0.0f : x->i[i] == 0;
}

/* The number of places is known only now: the result is created here. */
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
