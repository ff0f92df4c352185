/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions of reductions, matmul, sdpa and top-k. */
#include "transformations/graph/shape.h"

/* ---- reductions -------------------------------------------------------------------- */

static struct xm_dim
reduce_two(const struct xm_infer *i, struct xm_dim a, struct xm_dim b)
{
    if (i->op == XM_OP_REDUCE_SUM)
        return xm_dim_add(i->dims, a, b);
    if (i->op == XM_OP_REDUCE_PROD)
        return xm_dim_mul(i->dims, a, b);
    if (xm_dim_eq(a, b))
        return a;
    if (i->op == XM_OP_REDUCE_MEAN || !xm_dim_is_const(a) || !xm_dim_is_const(b))
        return xm_dim_fresh(i->dims);
    return (i->op == XM_OP_REDUCE_MIN) == (a.n < b.n) ? a : b;
}

static enum xm_status
reduce_content(struct xm_infer *i, uint32_t axes)
{
    const struct xm_content *c = xm_infer_content(i, 0);
    struct xm_dim e;
    if (!c || c->n == 0 || !xm_element_is_int(i->out[0].type.element))
        return XM_OK;
    if (axes == 0) {
        i->out[0].content = *c;
        return XM_OK;
    }
    e = c->e[0];
    for (uint32_t j = 1; j < c->n; j++)
        e = reduce_two(i, e, c->e[j]);
    return xm_content_set(i, 0, &e, 1);
}

enum xm_status
xm_shape_reduce(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    struct xm_shape s = {0};
    uint32_t axes;
    XM_TRY(xm_infer_axes(i, 1, in->rank, &axes));
    for (uint32_t j = 0; j < in->rank; j++) {
        bool reduced = axes & (1u << j);
        if (reduced && i->attr->reduce.keep_dims)
            s.dim[s.rank++] = xm_dim_const(1);
        else if (!reduced)
            s.dim[s.rank++] = in->dim[j];
    }
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, s};
    return reduce_content(i, axes);
}

/* ---- matmul ------------------------------------------------------------------------ */

/* The shape of an operand of matmul as a matrix. A vector becomes a row on the left, a column on
 * the right, and is not transposed. */
static struct xm_shape
as_matrix(const struct xm_shape *in, bool transposed, bool left)
{
    struct xm_shape s = *in;
    if (in->rank == 1) {
        s.rank = 2;
        s.dim[left ? 0 : 1] = xm_dim_const(1);
        s.dim[left ? 1 : 0] = in->dim[0];
    } else if (transposed) {
        s.dim[s.rank - 2] = in->dim[in->rank - 1];
        s.dim[s.rank - 1] = in->dim[in->rank - 2];
    }
    return s;
}

enum xm_status
xm_shape_matmul(struct xm_infer *i)
{
    const struct xm_shape *x = xm_infer_shape(i, 0), *y = xm_infer_shape(i, 1);
    struct xm_shape a, b, s;
    struct xm_dim k;
    XM_TRY(xm_infer_same_element(i, 0, 1, &i->out[0].type.element));
    if (x->rank == 0 || y->rank == 0)
        return xm_shape_fail(i, "a product needs operands of rank 1 or more");
    a = as_matrix(x, i->attr->matmul.transpose_a, true);
    b = as_matrix(y, i->attr->matmul.transpose_b, false);
    if (!xm_dim_merge(a.dim[a.rank - 1], b.dim[b.rank - 2], &k))
        return xm_shape_fail(
            i, "rows of %lld elements cannot be multiplied by columns of %lld elements",
            (long long)a.dim[a.rank - 1].n, (long long)b.dim[b.rank - 2].n);
    struct xm_dim m = a.dim[a.rank - 2], n = b.dim[b.rank - 1];
    a.rank -= 2;
    b.rank -= 2;
    if (!xm_shape_broadcast_pair(i->dims, &a, &b, &s))
        return xm_shape_fail(i, "the batch dimensions cannot be broadcast together");
    if (x->rank > 1)
        s.dim[s.rank++] = m;
    if (y->rank > 1)
        s.dim[s.rank++] = n;
    i->out[0].type.shape = s;
    return XM_OK;
}

/* ---- top-k ------------------------------------------------------------------------- */

enum xm_status
xm_shape_topk(struct xm_infer *i)
{
    const struct xm_shape *in = xm_infer_shape(i, 0);
    const struct xm_content *content = xm_infer_content(i, 1);
    struct xm_shape s = *in;
    struct xm_dim k;
    uint32_t axis;
    if (xm_infer_shape(i, 1)->rank > 1 || (content && content->n != 1))
        return xm_shape_fail(i, "operand 1, k, must be a scalar");
    if (!xm_element_is_int(i->attr->topk.element))
        return xm_shape_fail(i, "indices must be of an integer type, not %s",
                             xm_element_text(i->attr->topk.element));
    XM_TRY(xm_infer_axis(i, i->attr->topk.axis, in->rank, &axis));
    k = content ? content->e[0] : xm_dim_fresh(i->dims);
    if (xm_dim_is_const(k) &&
        (k.n < 0 || (xm_dim_is_const(in->dim[axis]) && k.n > in->dim[axis].n)))
        return xm_shape_fail(i, "%lld elements cannot be taken from dimension %u",
                             (long long)k.n, axis);
    s.dim[axis] = k;
    i->out[0].type = (struct xm_type){xm_infer_type(i, 0)->element, s};
    i->out[1].type = (struct xm_type){i->attr->topk.element, s};
    return XM_OK;
}

/* ---- scaled dot product attention -------------------------------------------------- */

/* q [..,L,E], k [..,S,E], v [..,S,Ev] -> [..,L,Ev]. */
enum xm_status
xm_shape_sdpa(struct xm_infer *i)
{
    struct xm_shape q = *xm_infer_shape(i, 0), k = *xm_infer_shape(i, 1),
                    v = *xm_infer_shape(i, 2), s;
    struct xm_dim d;
    for (uint32_t j = 0; j < 3; j++)
        if (xm_infer_shape(i, j)->rank < 2)
            return xm_shape_fail(i, "operand %u must have rank 2 or more", j);
    XM_TRY(xm_infer_same_element(i, 0, 1, &i->out[0].type.element));
    XM_TRY(xm_infer_same_element(i, 0, 2, &i->out[0].type.element));
    if (!xm_dim_merge(q.dim[q.rank - 1], k.dim[k.rank - 1], &d))
        return xm_shape_fail(i, "query and key differ in their last dimension");
    if (!xm_dim_merge(k.dim[k.rank - 2], v.dim[v.rank - 2], &d))
        return xm_shape_fail(i, "key and value differ in length");
    struct xm_dim length = q.dim[q.rank - 2], width = v.dim[v.rank - 1];
    q.rank -= 2;
    k.rank -= 2;
    v.rank -= 2;
    if (!xm_shape_broadcast_pair(i->dims, &q, &k, &s) ||
        !xm_shape_broadcast_pair(i->dims, &s, &v, &s))
        return xm_shape_fail(i, "the batch dimensions cannot be broadcast together");
    s.dim[s.rank++] = length;
    s.dim[s.rank++] = width;
    i->out[0].type.shape = s;
    return XM_OK;
}
