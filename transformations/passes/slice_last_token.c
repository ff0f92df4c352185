/* SPDX-License-Identifier: Apache-2.0
 *
 *     result(f(matmul(x, W)))  ->  result(f(matmul(x[:, -1:, :], W)))
 *
 * x is [B,T,H] and f elementwise with constants (soft-capping, say). The head of a
 * language model has the largest matrix of all and generation reads one row of its
 * result.
 */
#include "transformations/passes/slice_last_token.h"

#include "transformations/graph/builder.h"

/* The matmul with a constant right side that the value is computed from by elementwise
 * steps. */
static struct xm_node *
find_head(struct xm_value *v)
{
    while (v->node->op != XM_OP_MATMUL) {
        struct xm_value *next = NULL;
        if (!(xm_op_info(v->node->op)->flags & XM_OPF_ELTWISE) || v->n_uses != 1)
            return NULL;
        for (uint32_t i = 0; i < v->node->n_in; i++) {
            struct xm_value *in = xm_in(v->node, i);
            if (xm_value_is_const(in))
                continue;
            if (next)
                return NULL;
            next = in;
        }
        if (!next)
            return NULL;
        v = next;
    }
    bool per_token = v->type.shape.rank == 3 && !v->node->attr.matmul.transpose_a &&
                     xm_in(v->node, 0)->type.shape.rank == 3 && v->n_uses == 1;
    return per_token ? v->node : NULL;
}

static bool
slice_operand(struct xm_graph *g, struct xm_node *head)
{
    struct xm_builder b = xm_builder_before(g, head);
    const int64_t start = -1, stop = INT64_MAX, step = 1, axis = 1;
    struct xm_value *in[5] = {xm_in(head, 0), xm_const_ints(&b, XM_I64, &start, 1),
                              xm_const_ints(&b, XM_I64, &stop, 1),
                              xm_const_ints(&b, XM_I64, &step, 1),
                              xm_const_ints(&b, XM_I64, &axis, 1)};
    struct xm_value *last = xm_op_build(&b, XM_OP_SLICE, NULL, in, 5);
    if (!last)
        return false;
    xm_node_set_in(head, 0, last);
    return true;
}

bool
xm_pass_slice_last_token(struct xm_graph *g)
{
    bool progress = false;
    xm_for_each_node(n, g)
    {
        struct xm_node *head = n->op == XM_OP_RESULT ? find_head(xm_in(n, 0)) : NULL;
        if (head && xm_dim_is_const(xm_in(head, 0)->type.shape.dim[1]) == false)
            progress |= slice_operand(g, head);
    }
    if (progress)
        xm_graph_infer(g);
    return progress;
}
