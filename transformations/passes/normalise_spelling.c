/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrites operations that can be written in several ways to one form, so that patterns of later
 * passes need only that form.
 *
 *     squeeze, unsqueeze, reshape with 0 or -1   ->   reshape(x, the result's dimensions)
 *     reshape(reshape(x))                        ->   reshape(x)
 *     convert_like(x, y)                         ->   convert(x)
 *     negative axes of softmax, top-k, concat    ->   positive ones
 *     mvn(x)                                     ->   y (1 / sqrt(mean(y^2) + epsilon)),
 *                                                     y = x - mean(x)
 *     power(v, -0.5), power(v, 0.5)              ->   1 / sqrt(v), sqrt(v)
 *     x / sqrt(v)                                ->   x (1 / sqrt(v))
 *     x x                                        ->   power(x, 2)
 *     x sigmoid(x), swish(x, 1)                  ->   swish(x)
 *     gather(x, convert(ids)), scatter likewise  ->   gather(x, ids)
 *
 * Not done: reshapes whose size depends on data keep their form.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { X, V };

/* A scalar constant of v's element type. */
static struct xm_value *
scalar_like(struct xm_builder *b, const struct xm_value *v, float number)
{
    return xm_const_float(b, v->type.element, number);
}

static struct xm_value *
reciprocal_root(struct xm_builder *b, struct xm_value *v)
{
    struct xm_value *one = scalar_like(b, v, 1.0f), *root = xm_op1(b, XM_OP_SQRT, v);
    return xm_op2(b, XM_OP_DIVIDE, one, root);
}

static bool
is_not_number(struct xm_match *m)
{
    float number;
    return !xm_value_is_scalar_const(m->slot[X], &number);
}

static bool
is_float(struct xm_match *m)
{
    return xm_element_is_float(m->root->out[0].type.element);
}

/* Whether the result has the shape of V: the scalar operand may have a higher rank. */
static bool
keeps_rank(struct xm_match *m)
{
    return is_float(m) &&
           xm_shape_eq(&m->slot[V]->type.shape, &m->root->out[0].type.shape);
}

/* clang-format off */
#define RECIPROCAL_ROOT P(DIVIDE, SCALAR(1), P(SQRT, VAR(V)))
static const struct xm_rule rules[] = {
    { "power(v, -0.5)", P(POWER, VAR(V), SCALAR(-0.5)),     RECIPROCAL_ROOT, .condition = keeps_rank },
    { "power(v, 0.5)",  P(POWER, VAR(V), SCALAR(0.5)),      P(SQRT, VAR(V)), .condition = keeps_rank },
    { "x / sqrt(v)",    P(DIVIDE, VAR(X), P(SQRT, VAR(V))), P(MULTIPLY, VAR(X), RECIPROCAL_ROOT), .condition = is_not_number },
    { "x x",            P(MULTIPLY, VAR(X), VAR(X)),        P(POWER, VAR(X), SCALAR(2)), .condition = is_float },
    { "x sigmoid(x)",   P(MULTIPLY, VAR(X), P(SIGMOID, VAR(X))), P(SWISH, VAR(X)), .condition = NULL },
    { "swish(x, 1)",    P(SWISH, VAR(X), SCALAR(1)),        P(SWISH, VAR(X)), .condition = NULL },
    { .name = NULL },
};
/* clang-format on */

/* ---- reshapes ---------------------------------------------------------------------- */

static bool
has_unknown_dim(const struct xm_shape *s)
{
    for (uint32_t i = 0; i < s->rank; i++)
        if (xm_dim_is_unknown(s->dim[i]))
            return true;
    return false;
}

static bool
is_plain_reshape(const struct xm_node *n)
{
    const struct xm_value *target = xm_in(n, 1);
    const struct xm_shape *s = &n->out[0].type.shape;
    if (n->op != XM_OP_RESHAPE || target->node->op != XM_OP_SHAPE_VALUE ||
        n->attr.reshape.special_zero || xm_in(n, 0)->node->op == XM_OP_RESHAPE)
        return false;
    for (uint32_t i = 0; i < s->rank; i++)
        if (!xm_dim_eq(s->dim[i], target->content.e[i]))
            return false;
    return true;
}

static struct xm_value *
plain_reshape(struct xm_builder *b, struct xm_node *n)
{
    const struct xm_shape *s = &n->out[0].type.shape;
    struct xm_value *x = xm_in(n, 0);
    if (has_unknown_dim(s) || is_plain_reshape(n))
        return NULL;
    while (x->node->op == XM_OP_RESHAPE)
        x = xm_in(x->node, 0);
    return xm_reshape_like(b, x, s);
}

/* ---- mean and variance ------------------------------------------------------------- */

static struct xm_value *
mean(struct xm_builder *b, struct xm_value *x, struct xm_value *axes)
{
    union xm_attr attr = {.reduce = {.keep_dims = true}};
    return xm_op_build(b, XM_OP_REDUCE_MEAN, &attr, (struct xm_value *[]){x, axes}, 2);
}

/* 1 / sqrt(variance + epsilon), or 1 / (sqrt(variance) + epsilon) */
static struct xm_value *
reciprocal_deviation(struct xm_builder *b, const struct xm_node *n,
                     struct xm_value *variance)
{
    struct xm_value *epsilon = scalar_like(b, &n->out[0], n->attr.mvn.epsilon);
    if (n->attr.mvn.epsilon_mode == XM_EPSILON_INSIDE_SQRT)
        return reciprocal_root(b, xm_op2(b, XM_OP_ADD, variance, epsilon));
    return xm_op2(b, XM_OP_DIVIDE, scalar_like(b, &n->out[0], 1.0f),
                  xm_op2(b, XM_OP_ADD, xm_op1(b, XM_OP_SQRT, variance), epsilon));
}

static struct xm_value *
written_out_mvn(struct xm_builder *b, const struct xm_node *n)
{
    struct xm_value *x = xm_in(n, 0), *axes = xm_in(n, 1), *square;
    struct xm_value *y = xm_op2(b, XM_OP_SUBTRACT, x, mean(b, x, axes));
    if (!y || !n->attr.mvn.scaled)
        return y;
    square = xm_op2(b, XM_OP_POWER, y, scalar_like(b, y, 2.0f));
    return xm_op2(b, XM_OP_MULTIPLY, y,
                  reciprocal_deviation(b, n, mean(b, square, axes)));
}

/* ---- converts and axes ------------------------------------------------------------- */

static struct xm_value *
plain_convert(struct xm_builder *b, const struct xm_node *n)
{
    const enum xm_element to = n->out[0].type.element;
    return xm_in(n, 0)->type.element == to ? xm_in(n, 0) : xm_convert(b, xm_in(n, 0), to);
}

/* Whether operand i of n may be indices of any integer type. */
static bool
takes_any_index(const struct xm_node *n, uint32_t i)
{
    return i == 1 && (n->op == XM_OP_GATHER || n->op == XM_OP_GATHER_ELEMENTS ||
                      n->op == XM_OP_SCATTER_ELEMENTS_UPDATE);
}

/* Removes a convert between i32 and i64 before indices: they count elements of a tensor, so their
 * values do not change. */
static bool
skip_index_convert(struct xm_graph *g, struct xm_node *n)
{
    struct xm_value *c = xm_in(n, 1), *x;
    if (c->node->op != XM_OP_CONVERT || !takes_any_index(n, 1))
        return false;
    x = xm_in(c->node, 0);
    if (!(x->type.element == XM_I64 || x->type.element == XM_I32) ||
        !(c->type.element == XM_I64 || c->type.element == XM_I32))
        return false;
    xm_node_set_in(n, 1, x);
    xm_node_remove_dead(g, c->node);
    return true;
}

static bool
make_positive(int64_t *axis, const struct xm_value *x)
{
    if (*axis >= 0)
        return false;
    *axis += x->type.shape.rank;
    return true;
}

/* The value of n rewritten to its normal form; NULL: it has that form, or a failure is in
 * graph->err. */
static struct xm_value *
respelled(struct xm_builder *b, struct xm_node *n)
{
    switch (n->op) {
    case XM_OP_RESHAPE:
    case XM_OP_SQUEEZE:
    case XM_OP_UNSQUEEZE:
        return plain_reshape(b, n);
    case XM_OP_MVN:
        return written_out_mvn(b, n);
    case XM_OP_CONVERT_LIKE:
        return plain_convert(b, n);
    default:
        return NULL;
    }
}

static bool
normalise_node(struct xm_graph *g, struct xm_node *n)
{
    struct xm_builder b = xm_builder_before(g, n);
    struct xm_value *y = n->out[0].n_uses ? respelled(&b, n) : NULL;
    if (y) {
        xm_value_replace(g, &n->out[0], y);
        xm_node_remove_dead(g, n);
        return true;
    }
    switch (n->op) {
    case XM_OP_GATHER:
    case XM_OP_SCATTER_ELEMENTS_UPDATE:
        return skip_index_convert(g, n);
    case XM_OP_GATHER_ELEMENTS:
        return skip_index_convert(g, n) | make_positive(&n->attr.axis.axis, xm_in(n, 0));
    case XM_OP_CONCAT:
        return make_positive(&n->attr.axis.axis, &n->out[0]);
    case XM_OP_SOFTMAX:
        return make_positive(&n->attr.axis.axis, &n->out[0]);
    case XM_OP_TOPK:
        return make_positive(&n->attr.topk.axis, xm_in(n, 0));
    default:
        return false;
    }
}

bool
xm_pass_normalise_spelling(struct xm_graph *g, const struct xm_caps *caps)
{
    bool any = false;
    xm_for_each_node_safe(n, g)
    {
        any |= normalise_node(g, n);
        if (g->err.status != XM_OK)
            return any;
    }
    return xm_rewrite(g, caps, rules) || any;
}
