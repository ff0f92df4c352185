/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated linear unit of an MLP or of all experts at once.
 *
 *     activation(gate) up   ->   glu(gate, up)
 *
 * for swish (beta 1) and gelu, both of the same shape. Not done here: swish with another
 * beta, and the clamped form (fuse_vectorized_moe_3gemm knows it).
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum { GATE, UP, ACT };

static bool
same_shape(struct xm_match *m)
{
    m->why = "gate and up differ in shape";
    return xm_shape_eq(&m->slot[GATE]->type.shape, &m->slot[UP]->type.shape);
}

static struct xm_value *
make_glu(struct xm_builder *b, struct xm_match *m)
{
    const struct xm_node *act = m->slot[ACT]->node;
    union xm_attr attr = {.glu = {XM_ACT_SWISH}};
    if (act->op == XM_OP_GELU)
        attr.glu.activation = act->attr.gelu.approximation == XM_GELU_TANH
                                  ? XM_ACT_GELU_TANH
                                  : XM_ACT_GELU_ERF;
    return xm_op_build(b, XM_OP_GLU, &attr,
                       (struct xm_value *[]){m->slot[GATE], m->slot[UP]}, 2);
}

/* clang-format off */
static const struct xm_rule rules[] = {
    { "swish", P(MULTIPLY, PN(ACT, SWISH, VAR(GATE)), VAR(UP)), NULL, make_glu, same_shape },
    { "gelu",  P(MULTIPLY, PN(ACT, GELU,  VAR(GATE)), VAR(UP)), NULL, make_glu, same_shape },
};
/* clang-format on */

bool
xm_pass_fuse_glu(struct xm_graph *g, const struct xm_caps *caps)
{
    return xm_rewrite(g, caps, rules, XM_ARRAY_LEN(rules));
}
