/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions of the tiled expert block. Each failure has a sentence. */
#include "transformations/passes/moe_block.h"

#include "transformations/passes/pass_util.h"

int64_t
xm_moe_experts(const struct xm_match *m)
{
    return m->slot[MOE_ROUTED]->type.shape.dim[0].n;
}

static bool
scatter_holds(struct xm_match *m)
{
    static const int64_t swapped[] = {1, 0};
    const struct xm_node *scatter = m->slot[MOE_SCATTER]->node;
    const struct xm_shape *dense = &m->slot[MOE_SCATTER]->type.shape;
    const struct xm_shape *ids = &m->slot[MOE_IDS]->type.shape;
    if (scatter->attr.scatter.reduction != XM_REDUCTION_NONE)
        return refuse(m, "the routing weights are scattered with a reduction");
    if (dense->rank != 2 || ids->rank != 2)
        return refuse(m, "the routing weights are not a matrix");
    if (!xm_is_axis(m->slot[MOE_SCATTER_AXIS], 2, 1))
        return refuse(m, "the routing weights are not scattered along the experts");
    if (!xm_is_filled(m->slot[MOE_BASE], 0.0f))
        return refuse(m, "the routing weights are not scattered into zeros");
    if (!xm_shape_eq(ids, &m->slot[MOE_WEIGHTS]->type.shape))
        return refuse(m, "ids and routing weights differ in shape");
    if (!xm_dim_is_const(ids->dim[1]) || !xm_dim_is_const(dense->dim[1]))
        return refuse(m, "the number of experts is not a constant");
    if (!xm_dim_eq(ids->dim[0], dense->dim[0]))
        return refuse(
            m, "the ids and the dense routing weights have different numbers of tokens");
    if (!xm_ints_equal(m->slot[MOE_ORDER], swapped, 2))
        return refuse(m, "the dense routing weights are not transposed");
    return true;
}

bool
xm_moe_tail_holds(struct xm_match *m)
{
    const struct xm_node *product = xm_in(m->root, 0)->node;
    bool second = xm_in(product, 1) == m->slot[MOE_ROUTED];
    const struct xm_shape *experts = &xm_in(product, second ? 0 : 1)->type.shape;
    const struct xm_shape *routed = &m->slot[MOE_ROUTED]->type.shape;
    uint32_t rank = routed->rank;
    if (!scatter_holds(m))
        return false;
    if (m->root->attr.reduce.keep_dims || !xm_is_axis(m->slot[MOE_AXES], rank, 0))
        return refuse(m, "the sum does not run over the experts alone");
    if (rank < 3 || experts->rank != rank || !xm_dim_is(routed->dim[rank - 1], 1))
        return refuse(m, "routing weights and experts' results do not correspond");
    if (!xm_dim_eq(routed->dim[0], m->slot[MOE_SCATTER]->type.shape.dim[1]))
        return refuse(m,
                      "the experts are not the first dimension of the routing weights");
    for (uint32_t i = 0; i + 1 < rank; i++)
        if (!xm_dim_eq(routed->dim[i], experts->dim[i]))
            return refuse(m, "routing weights and experts' results differ in shape");
    return true;
}

bool
xm_moe_is_tiled(struct xm_match *m, const struct xm_value *tiled, int64_t experts,
                struct xm_value **x)
{
    const struct xm_node *tile = xm_in(tiled->node, 0)->node;
    const struct xm_shape *s = &tiled->type.shape;
    const struct xm_shape *from = &xm_in(tile, 0)->type.shape;
    const int64_t repeats[] = {experts, 1};
    *x = xm_in(tile, 0);
    if (from->rank != 2 || !xm_ints_equal(xm_in(tile, 1), repeats, 2))
        return refuse(m, "the tokens are not tiled once for each expert");
    if (s->rank != 3 || !xm_dim_is(s->dim[0], experts) ||
        !xm_dim_eq(s->dim[1], from->dim[0]) || !xm_dim_eq(s->dim[2], from->dim[1]))
        return refuse(m, "the tiled tokens are not [experts, tokens, hidden]");
    if (!xm_dim_eq(s->dim[1], m->slot[MOE_IDS]->type.shape.dim[0]))
        return refuse(m, "the tiled tokens are not the tokens that are routed");
    return true;
}

bool
xm_moe_is_expert_matmul(struct xm_match *m, const struct xm_value *matmul,
                        int64_t experts)
{
    const struct xm_node *n = matmul->node;
    const struct xm_value *w = xm_in(n, 1);
    if (n->attr.matmul.transpose_a || !n->attr.matmul.transpose_b)
        return refuse(m, "the experts' matmul is not x times a transposed weight");
    if (w->node->op != XM_OP_WEIGHT || w->type.shape.rank != 3)
        return refuse(m, "an expert's weight is not a constant of rank 3");
    if (!xm_dim_is(w->type.shape.dim[0], experts))
        return refuse(m, "the weights and the routing have different numbers of experts");
    return true;
}
