/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions of sources, sinks and states. Their types are declared; the functions check that
 * the declaration fits the data.
 */
#include "transformations/graph/shape.h"

enum xm_status
xm_shape_none(struct xm_infer *i)
{
    i->out[0].type = (struct xm_type){.element = XM_DYNAMIC};
    return XM_OK;
}

static enum xm_status
const_content(struct xm_infer *i, uint64_t n)
{
    struct xm_dim e[XM_MAX_CONTENT];
    const struct xm_type *t = &i->out[0].type;
    if (!xm_element_is_int(t->element) || !xm_element_readable(t->element) ||
        t->shape.rank > 1 || n > XM_MAX_CONTENT)
        return XM_OK;
    for (uint64_t j = 0; j < n; j++)
        e[j] = xm_dim_const(xm_load_int(t->element, i->attr->data.bytes, j));
    return xm_content_set(i, 0, e, (uint32_t)n);
}

static enum xm_status
check_const(struct xm_infer *i)
{
    const struct xm_type *t = &i->out[0].type;
    uint64_t n, bytes;
    if (!xm_static_elements(&t->shape, &n))
        return xm_shape_fail(i, "the shape of a constant must be constant");
    if (t->element == XM_STRING)
        return XM_OK; /* strings have their own layout of bytes */
    if (!xm_element_bytes(t->element, n, &bytes))
        return xm_shape_fail(i, "a constant of %s has no size",
                             xm_element_text(t->element));
    if (bytes != i->attr->data.n_bytes)
        return xm_shape_fail(
            i, "a constant of %llu %s elements takes %llu bytes, not %llu",
            (unsigned long long)n, xm_element_text(t->element), (unsigned long long)bytes,
            (unsigned long long)i->attr->data.n_bytes);
    return const_content(i, n);
}

enum xm_status
xm_shape_declared(struct xm_infer *i)
{
    for (uint32_t j = 0; j < i->out[0].type.shape.rank; j++)
        if (xm_dim_is_const(i->out[0].type.shape.dim[j]) &&
            i->out[0].type.shape.dim[j].n < 0)
            return xm_shape_fail(i, "dimension %u is negative", j);
    return i->op == XM_OP_CONST ? check_const(i) : XM_OK;
}

enum xm_status
xm_shape_weight(struct xm_infer *i)
{
    const struct xm_weight *w = &i->attr->weight;
    const uint64_t size[] = {w->experts, w->rows, w->cols};
    struct xm_shape *s = &i->out[0].type.shape;
    const char *wrong;
    if (w->rank < 1 || w->rank > 3)
        return xm_shape_fail(i, "a weight has rank 1 to 3, not %u", w->rank);
    if (w->experts > INT64_MAX || w->rows > INT64_MAX || w->cols > INT64_MAX)
        return xm_shape_fail(i, "a weight's size exceeds 63 bits");
    wrong = xm_weight_check(w);
    if (wrong)
        return xm_shape_fail(i, "weight [%llu,%llu,%llu] of %s: %s",
                             (unsigned long long)w->experts, (unsigned long long)w->rows,
                             (unsigned long long)w->cols, xm_weight_format_text(w),
                             wrong);
    if (!xm_element_is_float(i->out[0].type.element))
        return xm_shape_fail(i, "a weight is used as a float type, not %s",
                             xm_element_text(i->out[0].type.element));
    s->rank = w->rank;
    for (uint32_t j = 0; j < w->rank; j++)
        s->dim[j] = xm_dim_const((int64_t)size[3 - w->rank + j]);
    return XM_OK;
}

enum xm_status
xm_shape_shape_value(struct xm_infer *i)
{
    const struct xm_content *c = &i->attr->shape_value;
    struct xm_shape *s = &i->out[0].type.shape;
    if (!xm_element_is_int(i->out[0].type.element))
        return xm_shape_fail(i, "a shape value holds integers, not %s",
                             xm_element_text(i->out[0].type.element));
    if (s->rank > 1 || c->n > XM_MAX_CONTENT || (s->rank == 0 && c->n != 1))
        return xm_shape_fail(i,
                             "a shape value is a scalar or a vector of up to %d elements",
                             XM_MAX_CONTENT);
    if (s->rank == 1)
        s->dim[0] = xm_dim_const(c->n);
    return xm_content_set(i, 0, c->e, c->n);
}

enum xm_status
xm_shape_read_value(struct xm_infer *i)
{
    const struct xm_type *t = &i->out[0].type;
    if (!xm_infer_has(i, 0))
        return XM_OK;
    if (xm_infer_type(i, 0)->element != t->element &&
        xm_infer_type(i, 0)->element != XM_DYNAMIC)
        return xm_shape_fail(i, "the initial value of a state of %s has another type",
                             xm_element_text(t->element));
    return xm_infer_rank(i, 0, t->shape.rank);
}
