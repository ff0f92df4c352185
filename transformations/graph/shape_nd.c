/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions of gather and scatter by tuples of indices, and of non_zero.
 */
#include "transformations/graph/shape.h"

/* Sets *out to the length of the index tuples: the last dimension of operand k, a constant of 1 …
 * most. */
static enum xm_status
tuple_length(struct xm_infer *i, uint32_t k, uint32_t most, uint32_t *out)
{
    const struct xm_shape *s = xm_infer_shape(i, k);
    if (s->rank == 0 || !xm_dim_is_const(s->dim[s->rank - 1]) ||
        s->dim[s->rank - 1].n < 1 || s->dim[s->rank - 1].n > (int64_t)most)
        return xm_shape_fail(i, "operand %u must end in a constant dimension of 1 to %u",
                             k, most);
    *out = (uint32_t)s->dim[s->rank - 1].n;
    return XM_OK;
}

/* *out = head[0 … n_head) followed by tail[from …). */
static enum xm_status
join(struct xm_infer *i, const struct xm_shape *head, uint32_t n_head,
     const struct xm_shape *tail, uint32_t from, struct xm_shape *out)
{
    *out = (struct xm_shape){.rank = n_head + tail->rank - from};
    if (out->rank > XM_MAX_RANK)
        return xm_shape_fail(i, "the result would have a rank above %d", XM_MAX_RANK);
    for (uint32_t d = 0; d < n_head; d++)
        out->dim[d] = head->dim[d];
    for (uint32_t d = from; d < tail->rank; d++)
        out->dim[n_head + d - from] = tail->dim[d];
    return XM_OK;
}

enum xm_status
xm_shape_gather_nd(struct xm_infer *i)
{
    const struct xm_shape *x = xm_infer_shape(i, 0), *ids = xm_infer_shape(i, 1);
    int64_t batch = i->attr->gather.batch_dims;
    uint32_t length;
    if (batch < 0 || batch >= (int64_t)x->rank || batch >= (int64_t)ids->rank)
        return xm_shape_fail(i,
                             "batch_dims is %lld, which is not valid for these operands",
                             (long long)batch);
    XM_TRY(tuple_length(i, 1, x->rank - (uint32_t)batch, &length));
    for (int64_t d = 0; d < batch; d++) {
        struct xm_dim merged;
        if (!xm_dim_merge(x->dim[d], ids->dim[d], &merged))
            return xm_shape_fail(i, "the operands differ in batch dimension %lld",
                                 (long long)d);
    }
    i->out[0].type.element = xm_infer_type(i, 0)->element;
    return join(i, ids, ids->rank - 1, x, (uint32_t)batch + length,
                &i->out[0].type.shape);
}

enum xm_status
xm_shape_scatter_nd(struct xm_infer *i)
{
    const struct xm_shape *x = xm_infer_shape(i, 0), *ids = xm_infer_shape(i, 1);
    struct xm_shape updates;
    uint32_t length;
    XM_TRY(tuple_length(i, 1, x->rank, &length));
    XM_TRY(join(i, ids, ids->rank - 1, x, length, &updates));
    XM_TRY(xm_infer_rank(i, 2, updates.rank));
    for (uint32_t d = 0; d < updates.rank; d++) {
        struct xm_dim merged;
        if (!xm_dim_merge(updates.dim[d], xm_infer_shape(i, 2)->dim[d], &merged))
            return xm_shape_fail(i, "dimension %u of the updates does not fit", d);
    }
    XM_TRY(xm_infer_same_element(i, 0, 2, &i->out[0].type.element));
    i->out[0].type.shape = *x;
    return XM_OK;
}

/* The number of elements that are not zero depends on the data, so it is a fresh symbol. */
enum xm_status
xm_shape_non_zero(struct xm_infer *i)
{
    const struct xm_shape *x = xm_infer_shape(i, 0);
    if (x->rank == 0)
        return xm_shape_fail(i, "operand 0 must have rank 1 or more");
    i->out[0].type.element = i->attr->convert.element;
    i->out[0].type.shape = (struct xm_shape){
        .rank = 2, .dim = {xm_dim_const(x->rank), xm_dim_fresh(i->dims)}};
    return XM_OK;
}
