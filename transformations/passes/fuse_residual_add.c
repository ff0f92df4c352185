/* SPDX-License-Identifier: Apache-2.0
 *
 * What a branch is added to joins the operation that ends the branch.
 *
 *     r + x W^T (+ b)                         ->   linear(x, r, W, b)
 *     r + moe_3gemm_fused_compressed(x, ..)   ->   moe_3gemm_fused_compressed(x, .., r)
 *
 * in either order; reshapes between product and sum are passed through. Both have the sum's
 * shape: nothing is broadcast. The sum is then made in f32 and rounded once.
 */
#include "transformations/passes/linear_node.h"
#include "transformations/pipeline.h"

/* The end of a branch below reshapes that nobody else reads; NULL: not one that can add. */
static struct xm_node *
branch_end(struct xm_value *v)
{
    while (v->node->op == XM_OP_RESHAPE && v->n_uses == 1)
        v = xm_in(v->node, 0);
    struct xm_node *n = v->node;
    if (v->n_uses != 1)
        return NULL;
    if (n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED)
        return xm_is_none(xm_in(n, XM_MOE_ADDEND)) ? n : NULL;
    return xm_is_linear(n) ? n : NULL;
}

/* The branch's end with `addend`, of its own shape; NULL: it cannot be run (or err). */
static struct xm_value *
with_addend(struct xm_builder *b, const struct xm_caps *caps, struct xm_node *end,
            struct xm_value *addend)
{
    struct xm_value *in[XM_MOE_N_IN];
    bool is_moe = end->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
    uint32_t n_in = is_moe ? (uint32_t)XM_MOE_N_IN : (uint32_t)XM_LINEAR_BIAS + 1;
    enum xm_op op = is_moe ? end->op : XM_OP_LINEAR;
    const union xm_attr *attr = is_moe ? &end->attr : NULL;
    const char *why_not;
    for (uint32_t i = 0; is_moe && i < XM_MOE_N_IN; i++)
        in[i] = xm_in(end, i);
    if (!is_moe)
        xm_linear_operands(b->graph, end, in);
    in[is_moe ? (uint32_t)XM_MOE_ADDEND : (uint32_t)XM_LINEAR_ADDEND] = addend;
    if (!addend || !xm_can_run(caps, op, attr, in, n_in, &why_not))
        return NULL;
    return xm_op_build(b, op, attr, in, n_in);
}

static bool
fuse(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *add)
{
    struct xm_value *sum = &add->out[0];
    for (uint32_t i = 0; i < 2; i++) {
        struct xm_value *addend = xm_in(add, 1 - i);
        struct xm_node *end = branch_end(xm_in(add, i));
        if (!end || xm_value_is_const(addend) ||
            addend->type.element != sum->type.element ||
            !xm_shape_eq(&addend->type.shape, &sum->type.shape) ||
            !xm_shape_eq(&xm_in(add, i)->type.shape, &sum->type.shape))
            continue;
        struct xm_builder b = xm_builder_before(g, add);
        b.name = end->name;
        struct xm_value *y = with_addend(
            &b, caps, end, xm_reshape_like(&b, addend, &end->out[0].type.shape));
        y = xm_reshape_like(&b, y, &sum->type.shape);
        if (!y)
            return false;
        xm_value_replace(g, sum, y);
        xm_node_remove_dead(g, add);
        return true;
    }
    return false;
}

bool
xm_pass_fuse_residual_add(struct xm_graph *g, const struct xm_caps *caps)
{
    bool any = false;
    xm_for_each_node_safe(n, g)
    {
        if (n->op == XM_OP_ADD)
            any |= fuse(g, caps, n);
        if (g->err.status != XM_OK)
            break;
    }
    return any;
}
