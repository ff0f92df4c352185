/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the product whose result chooses experts, by following operands back from the node that
 * reads the choice. */
#include "transformations/passes/router_product.h"

enum { FAR = 32 }; /* most operations between the product and the reader of the choice */

bool
xm_reads_weight(const struct xm_node *n)
{
    return xm_in(n, n->op == XM_OP_GATHER ? 0 : 1)->node->op == XM_OP_WEIGHT;
}

bool
xm_is_norm(const struct xm_node *n)
{
    return n->op == XM_OP_RMS_NORM || n->op == XM_OP_ROW_CHAIN;
}

/* The first operand that is not a source; NULL: none. */
static const struct xm_value *
computed_operand(const struct xm_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!(xm_op_info(xm_in(n, i)->node->op)->flags & XM_OPF_SOURCE))
            return xm_in(n, i);
    }
    return NULL;
}

struct xm_node *
xm_router_product(const struct xm_node *n)
{
    const struct xm_value *v = NULL;
    if (n->op == XM_OP_MOE_ROUTER)
        v = xm_in(n, 0);
    else if (n->op == XM_OP_GATHER_MATMUL)
        v = xm_in(n, 2);
    else if (n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED)
        v = xm_in(n, xm_is_none(xm_in(n, XM_MOE_IDS)) ? XM_MOE_ROUTING : XM_MOE_IDS);
    for (uint32_t k = 0; v && k < FAR && !xm_is_norm(v->node); k++) {
        if (v->node->op == XM_OP_LINEAR ||
            (v->node->op == XM_OP_MATMUL && xm_reads_weight(v->node)))
            return v->node;
        v = computed_operand(v->node);
    }
    return NULL;
}
