/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated linear unit of an MLP or of all experts at once.
 *
 *     activation(gate) up   ->   glu(gate, up)
 *
 * for swish (beta 1) and gelu, gate and up having the same shape. Not done: swish with another
 * beta, and the clamped form (fuse_vectorized_moe_3gemm has it).
 */
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { GATE, UP, ACT };

static bool
same_shape(struct xm_match *m)
{
    m->why = "gate and up differ in shape";
    return xm_shape_eq(&m->slot[GATE]->type.shape, &m->slot[UP]->type.shape);
}

static void
set_activation(const struct xm_match *m, union xm_attr *attr)
{
    const struct xm_node *act = m->slot[ACT]->node;
    attr->glu.activation = act->op == XM_OP_SWISH ? XM_ACT_SWISH
                           : act->attr.gelu.approximation == XM_GELU_TANH
                               ? XM_ACT_GELU_TANH
                               : XM_ACT_GELU_ERF;
}

/* clang-format off */
#define UNIT P(GLU, VAR(GATE), VAR(UP)), .attr = set_activation, .condition = same_shape
const struct xm_rule xm_rules_fuse_glu[] = {
    { "swish", P(MULTIPLY, PN(ACT, SWISH, VAR(GATE)), VAR(UP)), UNIT },
    { "gelu",  P(MULTIPLY, PN(ACT, GELU,  VAR(GATE)), VAR(UP)), UNIT },
    { .name = NULL },
};
/* clang-format on */
