/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins a shared expert, which every token uses, with its moe_compressed.
 *
 *     moe(x, ..) + glu(x Sg', x Su') Sd'                   ->  moe(x, .., Sg, Su, Sd)
 *     moe(x, ..) + glu(x Sg', x Su') Sd' sigmoid(x Sgg')   ->  moe(x, .., Sg, Su, Sd, Sgg)
 *
 * in either order; reshapes between moe, shared expert and sum are allowed. Both must read the same
 * tokens and use the same activation, and the device must be able to run them together.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { X, ACT, GATE, UP, DOWN, W_GATE, W_UP, W_DOWN, GATE_GATE, W_GATE_GATE, MOE };

static const struct xm_value *
skip_reshapes(const struct xm_value *v)
{
    while (v->node->op == XM_OP_RESHAPE)
        v = xm_in(v->node, 0);
    return v;
}

static bool
is_matrix(const struct xm_value *w, int64_t rows, int64_t cols)
{
    return xm_dim_is(w->type.shape.dim[0], rows) && xm_dim_is(w->type.shape.dim[1], cols);
}

static bool
can_take_one(struct xm_match *m)
{
    const struct xm_moe_attr *a = &m->slot[MOE]->node->attr.moe;
    m->why = "experts and shared expert differ in activation, or there is a shared "
             "expert already";
    return !a->shared && m->slot[ACT]->node->attr.glu.activation == (int)a->activation &&
           (a->activation != XM_ACT_SWISH || a->beta == 1.0f);
}

static bool
is_shared_expert(struct xm_match *m)
{
    const struct xm_shape *sum = &m->root->out[0].type.shape;
    int64_t hidden = m->slot[MOE]->node->attr.moe.hidden,
            inter = xm_last_dim(m->slot[ACT]);
    if (!can_take_one(m))
        return false;
    m->why = "the weights of experts and shared expert differ in shape";
    if (!xm_shape_eq(&xm_in(m->root, 0)->type.shape, sum) ||
        !xm_shape_eq(&xm_in(m->root, 1)->type.shape, sum) || inter <= 0 ||
        !is_matrix(m->slot[W_GATE], inter, hidden) ||
        !is_matrix(m->slot[W_UP], inter, hidden) ||
        !is_matrix(m->slot[W_DOWN], hidden, inter) ||
        (m->slot[W_GATE_GATE] && !is_matrix(m->slot[W_GATE_GATE], 1, hidden)))
        return false;
    m->why = "the shared expert reads other tokens than the experts";
    return skip_reshapes(m->slot[X]) ==
           skip_reshapes(xm_in(m->slot[MOE]->node, XM_MOE_HIDDEN));
}

static void
count_it(const struct xm_match *m, union xm_attr *attr)
{
    (void)m;
    attr->moe.shared = 1;
}

/* clang-format off */
#define MLP                                                                                \
    THROUGH(LINEAR_OF(DOWN, PN(ACT, GLU, LINEAR_OF(GATE, VAR(X), VAR(W_GATE), ABSENT),     \
                                         LINEAR_OF(UP, VAR(X), VAR(W_UP), ABSENT)),        \
                      VAR(W_DOWN), ABSENT))
#define GATED                                                                              \
    THROUGH(P(MULTIPLY, MLP, P(SIGMOID, LINEAR_OF(GATE_GATE, VAR(X), VAR(W_GATE_GATE), ABSENT))))
#define EXPERTS THROUGH(N(MOE, MOE_COMPRESSED, AT(XM_MOE_SHARED_GATE, ABSENT)))
#define JOINED                                                                             \
    N(MOE, MOE_COMPRESSED, AT(XM_MOE_SHARED_GATE, VAR(W_GATE)),                            \
      AT(XM_MOE_SHARED_UP, VAR(W_UP)), AT(XM_MOE_SHARED_DOWN, VAR(W_DOWN)),                \
      AT(XM_MOE_SHARED_GATE_GATE, VAR(W_GATE_GATE))),                                      \
    .attr = count_it, .condition = is_shared_expert
const struct xm_rule xm_rules_fuse_moe_shared_expert[] = {
    { "gated shared expert", P(ADD, EXPERTS, GATED), JOINED },
    { "shared expert",       P(ADD, EXPERTS, MLP),   JOINED },
    { .name = NULL },
};
/* clang-format on */
