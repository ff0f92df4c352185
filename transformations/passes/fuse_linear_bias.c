/* SPDX-License-Identifier: Apache-2.0
 *
 * The bias of a product with a stored matrix.
 *
 *     x W^T + b   ->   linear(x, W, b)        b a constant of N elements on the last axis
 *
 * Not done here: constants that differ from row to row.
 */
#include "transformations/passes/linear_node.h"
#include "transformations/pipeline.h"

/* Whether c is [1,..,1,N]. */
static bool
is_row(const struct xm_value *c, int64_t n)
{
    uint64_t elements;
    return c->node->op == XM_OP_CONST && xm_element_is_float(c->type.element) &&
           xm_static_elements(&c->type.shape, &elements) && (int64_t)elements == n &&
           xm_last_dim(c) == n;
}

static bool
fuse(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *add)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct xm_value *product = xm_in(add, i), *bias = xm_in(add, 1 - i);
        struct xm_value *in[XM_LINEAR_BIAS + 1];
        const char *why_not;
        if (!xm_is_linear(product->node) || product->node->op != XM_OP_MATMUL ||
            product->n_uses != 1 || !is_row(bias, xm_last_dim(product)) ||
            !xm_shape_eq(&product->type.shape, &add->out[0].type.shape))
            continue;
        struct xm_builder b = xm_builder_before(g, add);
        xm_linear_operands(g, product->node, in);
        in[XM_LINEAR_BIAS] = xm_const_flat(&b, bias);
        if (!in[XM_LINEAR_BIAS] ||
            !xm_can_run(caps, XM_OP_LINEAR, NULL, in, XM_LINEAR_BIAS + 1, &why_not))
            return false;
        struct xm_value *y = xm_op_build(&b, XM_OP_LINEAR, NULL, in, XM_LINEAR_BIAS + 1);
        if (!y)
            return false;
        xm_value_replace(g, &add->out[0], y);
        xm_node_remove_dead(g, add);
        return true;
    }
    return false;
}

bool
xm_pass_fuse_linear_bias(struct xm_graph *g, const struct xm_caps *caps)
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
