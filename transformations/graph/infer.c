/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls the shape functions; has helpers that they share.
 */
#include "transformations/graph/infer.h"

#include <string.h>

#include "runtime/util/number.h"
#include "transformations/graph/shape.h"

typedef enum xm_status (*shape_fn)(struct xm_infer *i);

static const shape_fn shape_fns[XM_OP_COUNT] = {
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    [XM_OP_##id] = xm_shape_##shape,
#include "transformations/graph/ops.def"
};

/* ---- failures ---------------------------------------------------------------------- */

enum xm_status
xm_shape_fail(struct xm_infer *i, const char *fmt, ...)
{
    enum { SHOWN = 4 };
    char what[256];
    struct xm_strbuf types = {0};
    va_list ap;
    va_start(ap, fmt);
    xm_print_v(what, sizeof(what), fmt, ap);
    va_end(ap);
    for (uint32_t k = 0; k < i->n_in && k < SHOWN; k++) {
        xm_strbuf_add(&types, k ? ", " : " (operands: ");
        if (!xm_infer_has(i, k))
            xm_strbuf_add(&types, "_");
        else
            xm_type_print(xm_infer_type(i, k), &types);
    }
    xm_strbuf_add(&types, i->n_in > SHOWN ? ", …)" : i->n_in ? ")" : "");
    xm_fail(i->err, XM_INVALID, "%s%s", what, xm_strbuf_text(&types));
    xm_strbuf_free(&types);
    return XM_INVALID;
}

/* ---- reading operands -------------------------------------------------------------- */

enum xm_status
xm_infer_int(struct xm_infer *i, uint32_t k, int64_t *out)
{
    const struct xm_content *c = xm_infer_content(i, k);
    if (!c || c->n != 1 || !xm_dim_is_const(c->e[0]))
        return xm_shape_fail(i, "operand %u must be a constant integer", k);
    *out = c->e[0].n;
    return XM_OK;
}

enum xm_status
xm_infer_dims(struct xm_infer *i, uint32_t k, struct xm_dim *out, uint32_t max,
              uint32_t *n)
{
    const struct xm_content *c = xm_infer_content(i, k);
    const struct xm_shape *s = xm_infer_shape(i, k);
    uint64_t length = s->rank == 0 ? 1 : 0;
    if (c)
        length = c->n;
    else if (s->rank == 1 && xm_dim_is_const(s->dim[0]))
        length = (uint64_t)s->dim[0].n;
    else if (s->rank != 0)
        return xm_shape_fail(i, "operand %u must be a vector of known length", k);
    if (length > max)
        return xm_shape_fail(i, "operand %u has %llu elements, at most %u are supported",
                             k, (unsigned long long)length, max);
    for (uint32_t j = 0; j < length; j++)
        out[j] = c ? c->e[j] : xm_dim_fresh(i->dims);
    *n = (uint32_t)length;
    return XM_OK;
}

enum xm_status
xm_infer_axis(struct xm_infer *i, int64_t axis, uint32_t rank, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return xm_shape_fail(i, "axis %lld is outside a shape of rank %u",
                             (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return XM_OK;
}

enum xm_status
xm_infer_axes(struct xm_infer *i, uint32_t k, uint32_t rank, uint32_t *set)
{
    const struct xm_content *c = xm_infer_content(i, k);
    *set = 0;
    if (!c)
        return xm_shape_fail(i, "operand %u, the axes, must be constant", k);
    for (uint32_t j = 0; j < c->n; j++) {
        uint32_t axis;
        if (!xm_dim_is_const(c->e[j]))
            return xm_shape_fail(i, "operand %u, the axes, must be constant", k);
        XM_TRY(xm_infer_axis(i, c->e[j].n, rank, &axis));
        if (*set & (1u << axis))
            return xm_shape_fail(i, "operand %u names axis %u twice", k, axis);
        *set |= 1u << axis;
    }
    return XM_OK;
}

enum xm_status
xm_infer_same_element(struct xm_infer *i, uint32_t a, uint32_t b, enum xm_element *out)
{
    enum xm_element x = xm_infer_type(i, a)->element, y = xm_infer_type(i, b)->element;
    if (x != y && x != XM_DYNAMIC && y != XM_DYNAMIC)
        return xm_shape_fail(i, "operands %u and %u have different element types", a, b);
    *out = x == XM_DYNAMIC ? y : x;
    return XM_OK;
}

enum xm_status
xm_infer_rank(struct xm_infer *i, uint32_t k, uint32_t rank)
{
    if (xm_infer_shape(i, k)->rank != rank)
        return xm_shape_fail(i, "operand %u must have rank %u, not %u", k, rank,
                             xm_infer_shape(i, k)->rank);
    return XM_OK;
}

/* ---- dimensions -------------------------------------------------------------------- */

/* Broadcasts two dimensions: they are equal, or one is 1. If one is a symbol and the other a
 * constant above 1, the result is the constant; of two different symbols it is a fresh symbol.
 * False: they cannot be broadcast. */
static bool
broadcast_dim(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b, struct xm_dim *out)
{
    if (xm_dim_eq(a, b) || xm_dim_is(b, 1))
        *out = a;
    else if (xm_dim_is(a, 1))
        *out = b;
    else if (xm_dim_is_const(a) && xm_dim_is_const(b))
        return false;
    else if (xm_dim_is_const(a) || xm_dim_is_const(b))
        *out = xm_dim_is_const(a) ? a : b;
    else
        *out = xm_dim_fresh(p);
    return true;
}

bool
xm_shape_broadcast_pair(struct xm_dim_pool *p, const struct xm_shape *a,
                        const struct xm_shape *b, struct xm_shape *out)
{
    struct xm_shape s = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t j = 0; j < s.rank; j++) {
        uint32_t from_a = s.rank - a->rank, from_b = s.rank - b->rank;
        struct xm_dim x = j < from_a ? xm_dim_const(1) : a->dim[j - from_a];
        struct xm_dim y = j < from_b ? xm_dim_const(1) : b->dim[j - from_b];
        if (!broadcast_dim(p, x, y, &s.dim[j]))
            return false;
    }
    *out = s;
    return true;
}

bool
xm_dim_merge(struct xm_dim a, struct xm_dim b, struct xm_dim *out)
{
    if (xm_dim_is_const(a) && xm_dim_is_const(b) && a.n != b.n)
        return false;
    *out = xm_dim_is_const(b) ? b : a;
    return true;
}

enum xm_status
xm_content_set(struct xm_infer *i, uint32_t k, const struct xm_dim *e, uint32_t n)
{
    struct xm_dim *copy;
    if (n > XM_MAX_CONTENT)
        return XM_OK;
    copy = xm_arena_alloc(i->arena, (n ? n : 1) * sizeof(*copy));
    if (!copy)
        return xm_no_memory(i->err, "the content of a shape");
    memcpy(copy, e, n * sizeof(*copy));
    i->out[k].content = (struct xm_content){n, copy};
    return XM_OK;
}

/* ---- running ----------------------------------------------------------------------- */

/* Checks results: no size may be negative, and the number of elements must not overflow. */
static enum xm_status
check_sizes(struct xm_infer *i)
{
    for (uint32_t k = 0; k < i->n_out; k++) {
        const struct xm_shape *s = &i->out[k].type.shape;
        uint64_t n = 64; /* bits of the widest element */
        for (uint32_t j = 0; j < s->rank; j++) {
            if (!xm_dim_is_const(s->dim[j]))
                continue;
            if (s->dim[j].n < 0)
                return xm_shape_fail(i, "dimension %u of the result would be %lld", j,
                                     (long long)s->dim[j].n);
            if (s->dim[j].n > 0 && !xm_mul_size(n, (uint64_t)s->dim[j].n, &n))
                return xm_shape_fail(i, "the result would exceed 64-bit sizes");
        }
    }
    return XM_OK;
}

enum xm_status
xm_infer_run(struct xm_infer *i)
{
    XM_TRY(shape_fns[i->op](i));
    if (i->dims->failed)
        return xm_no_memory(i->err, "symbolic dimensions");
    return check_sizes(i);
}

enum xm_status
xm_infer_node(struct xm_graph *g, const struct xm_node *n, struct xm_arena *arena,
              struct xm_value *out, struct xm_error *err)
{
    struct xm_infer i = {n->op, &n->attr, n->n_in, n->n_out, n->in,
                         out,   &g->dims, arena,   err};
    for (uint32_t k = 0; k < n->n_out; k++)
        out[k].content = (struct xm_content){0};
    return xm_infer_run(&i);
}

bool
xm_type_agrees(const struct xm_type *a, const struct xm_type *b)
{
    if (a->element != b->element || a->shape.rank != b->shape.rank)
        return false;
    for (uint32_t j = 0; j < a->shape.rank; j++) {
        struct xm_dim x = a->shape.dim[j], y = b->shape.dim[j];
        if (!xm_dim_eq(x, y) && !xm_dim_is_unknown(x) && !xm_dim_is_unknown(y))
            return false;
    }
    return true;
}
