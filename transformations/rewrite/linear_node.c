/* SPDX-License-Identifier: Apache-2.0 */
#include "transformations/rewrite/linear_node.h"

bool
xm_is_linear(const struct xm_node *n)
{
    if (n->op == XM_OP_LINEAR)
        return n->n_out == 1 && !n->attr.linear.glu &&
               xm_is_none(xm_in(n, XM_LINEAR_ADDEND));
    if (n->op != XM_OP_MATMUL || n->attr.matmul.transpose_a ||
        !n->attr.matmul.transpose_b)
        return false;
    const struct xm_node *w = xm_in(n, 1)->node;
    return w->op == XM_OP_WEIGHT && w->attr.weight.rank == 2;
}

void
xm_linear_operands(struct xm_graph *g, const struct xm_node *n,
                   struct xm_value *in[XM_LINEAR_BIAS + 1])
{
    bool is_matmul = n->op == XM_OP_MATMUL;
    in[XM_LINEAR_X] = xm_in(n, 0);
    in[XM_LINEAR_ADDEND] = xm_none(g);
    in[XM_LINEAR_W] = is_matmul ? xm_in(n, 1) : xm_in(n, XM_LINEAR_W);
    in[XM_LINEAR_BIAS] = is_matmul ? xm_none(g) : xm_in(n, XM_LINEAR_BIAS);
}
