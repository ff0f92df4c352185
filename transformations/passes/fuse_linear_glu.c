/* SPDX-License-Identifier: Apache-2.0
 *
 * A gated linear unit joins the products that it is made of.
 *
 *     glu(x W0^T (+ b0), x W1^T (+ b1))   ->   linear(x, W0, b0, W1, b1) glu
 *     glu(x W0^T (+ b0), e)               ->   linear(x, e, W0, b0) glu
 *     glu(x W0^T (+ b0), e[..,i,:])       ->   linear(x, e, W0, b0) glu slice=i
 *
 * The second form also takes products that the machine cannot join. Not done here: a unit whose
 * gate is no product.
 */
#include "transformations/passes/linear_node.h"
#include "transformations/pipeline.h"

/* What v is a slice of, along the last axis but one, and which; v itself when it is none. */
static struct xm_value *
whole_of(struct xm_value *v, int64_t *slice)
{
    struct xm_node *n = v->node;
    uint32_t rank = v->type.shape.rank;
    int64_t i;
    *slice = 0;
    if (n->op != XM_OP_GATHER || n->attr.gather.batch_dims != 0 ||
        xm_value_is_const(xm_in(n, 0)))
        return v;
    const struct xm_shape *s = &xm_in(n, 0)->type.shape;
    if (rank < 1 || s->rank != rank + 1 || !xm_is_axis(xm_in(n, 2), s->rank, rank - 1) ||
        xm_value_const_ints(xm_in(n, 1), &i, 1) != 1 ||
        !xm_dim_is_const(s->dim[rank - 1]))
        return v;
    i += i < 0 ? s->dim[rank - 1].n : 0;
    if (i < 0 || i >= s->dim[rank - 1].n)
        return v;
    *slice = i;
    return xm_in(n, 0);
}

/* A product that nobody else reads. */
static bool
is_own_product(const struct xm_value *v)
{
    return xm_is_linear(v->node) && v->n_uses == 1;
}

/* in[] has the gate's product; the unit's result, or NULL: it cannot be run (or err). */
static struct xm_value *
with_product(struct xm_builder *b, const struct xm_caps *caps, union xm_attr *attr,
             struct xm_value **in, struct xm_value *up)
{
    enum { N_IN = XM_LINEAR_W + 2 * XM_LINEAR_SEGMENT };
    struct xm_value *second[XM_LINEAR_BIAS + 1];
    const char *why_not;
    if (!is_own_product(up) || xm_in(up->node, 0) != in[XM_LINEAR_X])
        return NULL;
    xm_linear_operands(b->graph, up->node, second);
    in[XM_LINEAR_W + XM_LINEAR_SEGMENT] = second[XM_LINEAR_W];
    in[XM_LINEAR_BIAS + XM_LINEAR_SEGMENT] = second[XM_LINEAR_BIAS];
    return xm_can_run(caps, XM_OP_LINEAR, attr, in, N_IN, &why_not)
               ? xm_op_build(b, XM_OP_LINEAR, attr, in, N_IN)
               : NULL;
}

static struct xm_value *
with_factor(struct xm_builder *b, const struct xm_caps *caps, union xm_attr *attr,
            struct xm_value **in, struct xm_value *factor)
{
    const char *why_not;
    in[XM_LINEAR_FACTOR] = whole_of(factor, &attr->linear.slice);
    return xm_can_run(caps, XM_OP_LINEAR, attr, in, XM_LINEAR_BIAS + 1, &why_not)
               ? xm_op_build(b, XM_OP_LINEAR, attr, in, XM_LINEAR_BIAS + 1)
               : NULL;
}

static bool
fuse(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *glu)
{
    struct xm_value *gate = xm_in(glu, 0), *up = xm_in(glu, 1);
    struct xm_value *in[XM_LINEAR_N_IN];
    union xm_attr attr = {
        .linear = {.glu = true, .activation = glu->attr.glu.activation}};
    if (!is_own_product(gate) || gate->type.element != up->type.element ||
        !xm_shape_eq(&gate->type.shape, &up->type.shape))
        return false;
    struct xm_builder b = xm_builder_before(g, glu);
    b.name = gate->node->name;
    xm_linear_operands(g, gate->node, in);
    struct xm_value *y = with_product(&b, caps, &attr, in, up);
    if (!y && g->err.status == XM_OK)
        y = with_factor(&b, caps, &attr, in, up);
    if (!y)
        return false;
    xm_value_replace(g, &glu->out[0], y);
    xm_node_remove_dead(g, glu);
    return true;
}

bool
xm_pass_fuse_linear_glu(struct xm_graph *g, const struct xm_caps *caps)
{
    bool any = false;
    xm_for_each_node_safe(n, g)
    {
        if (n->op == XM_OP_GLU)
            any |= fuse(g, caps, n);
        if (g->err.status != XM_OK)
            break;
    }
    return any;
}
