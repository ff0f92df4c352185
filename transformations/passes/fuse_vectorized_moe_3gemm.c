/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces the tiled expert block (moe_block.h) by moe.
 *
 *     sum_e routed[e] (glu(X Wg[e]', X Wu[e]') Wd[e]')
 *     sum_e routed[e] (glu(g, u) Wd[e]' + bd[e])
 *     sum_e routed[e] ((swish_beta(min(g, limit)) (clamp(u, -limit, limit) + 1)) Wd[e]' + bd[e])
 *   ->
 *     moe(X, weights, ids, ...)
 *
 * where g = X Wg[e]' + bg[e] and u = X Wu[e]' + bu[e]. In the last form g and u may also be the
 * even and odd columns, or the halves, of one product X Wgu[e]' + bgu[e]. In each form the operand
 * of Wd may be multiplied by a constant (hoist_factors) that broadcasts to [E,1,I].
 *
 * In the block every expert computes every token, and `routed` is zero except for the chosen
 * experts; moe computes only those. Both forms of the end of the block match. Weights and ids are
 * those of the scatter. Not done: swish with a beta in the first form, which lower_unfused_moe
 * takes.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum {
    GATE = MOE_BLOCK_SLOTS,
    UP,
    ACT,
    DOWN,
    W_GATE,
    W_UP,
    W_DOWN,
    BIAS_GATE,
    BIAS_UP,
    BIAS_DOWN,
    CLAMPED,
    GATE_PART,
    UP_PART,
    LIMIT,
    BETA,
    FACTOR
};
_Static_assert((int)FACTOR < (int)XM_MAX_SLOTS, "more slots than a match has");

/* clang-format off */
#define PRODUCT_G        PN(GATE, MATMUL, TILED, VAR(W_GATE))
#define PRODUCT_U        PN(UP, MATMUL, VAR(MOE_TILED), VAR(W_UP))
#define BIASED_G         P(ADD, PRODUCT_G, VAR(BIAS_GATE))
#define BIASED_U         P(ADD, PRODUCT_U, VAR(BIAS_UP))
#define UNIT(g, u)       PN(ACT, GLU, g, u)
#define CLAMPED_UNIT(g, u)                                                                \
    P(MULTIPLY, P(SWISH, P(MINIMUM, g, NUMBER(LIMIT)), NUMBER(BETA)),                     \
      P(ADD, PN(CLAMPED, CLAMP, u), SCALAR(1)))
#define DOWN_OF(h)        PN(DOWN, MATMUL, h, VAR(W_DOWN))
#define BIASED_DOWN_OF(h) P(ADD, DOWN_OF(h), VAR(BIAS_DOWN))
#define FACTORED(h)       P(MULTIPLY, h, WEIGHT(FACTOR))

/* The product of which gate and up are parts. */
static const struct xm_pat *const both_products = BIASED_G;
/* clang-format on */

/* The conditions that both forms share: the end of the block, the tokens, and the sizes of the
 * weights. */
static bool
block_holds(struct xm_match *m, int64_t rows_per_inter)
{
    int64_t experts, hidden;
    struct xm_value *x;
    if (!xm_moe_tail_holds(m))
        return false;
    experts = xm_moe_experts(m);
    if (!xm_moe_is_tiled(m, m->slot[MOE_TILED], experts, &x) ||
        !xm_moe_is_expert_matmul(m, m->slot[GATE], experts) ||
        !xm_moe_is_expert_matmul(m, m->slot[DOWN], experts))
        return false;
    const struct xm_shape *gate = &m->slot[W_GATE]->type.shape;
    const struct xm_shape *down = &m->slot[W_DOWN]->type.shape;
    hidden = xm_last_dim(x);
    if (!xm_dim_is(gate->dim[2], hidden) || !xm_dim_is(down->dim[1], hidden) ||
        gate->dim[1].n != rows_per_inter * down->dim[2].n)
        return refuse(m, "the weights of the experts do not match in their sizes");
    return true;
}

/* Whether v is a constant bias [E,1,n] for weight w. */
static bool
is_bias(const struct xm_value *v, const struct xm_value *w)
{
    const struct xm_shape *s = &v->type.shape;
    return v->node->op == XM_OP_CONST && s->rank == 3 && xm_dim_is(s->dim[1], 1) &&
           xm_dim_eq(s->dim[0], w->type.shape.dim[0]) &&
           xm_dim_eq(s->dim[2], w->type.shape.dim[1]);
}

/* Whether v is a constant factor: one number for each column, or for each column and expert. */
static bool
is_factor(const struct xm_value *v, const struct xm_value *w_down)
{
    const struct xm_shape *s = &v->type.shape, *w = &w_down->type.shape;
    const struct xm_dim full[] = {w->dim[0], xm_dim_const(1), w->dim[2]};
    if (v->node->op != XM_OP_CONST || !xm_element_is_float(v->type.element) ||
        !xm_element_readable(v->type.element) || s->rank > 3)
        return false;
    for (uint32_t i = 0; i < s->rank; i++) {
        const struct xm_dim d = s->dim[i];
        if (!xm_dim_is(d, 1) && !xm_dim_eq(d, full[3 - s->rank + i]))
            return false;
    }
    return true;
}

/* Checks factor, biases and limits, if the rule has them. */
static bool
extras_hold(struct xm_match *m)
{
    static const int biases[][2] = {
        {BIAS_GATE, W_GATE}, {BIAS_UP, W_UP}, {BIAS_DOWN, W_DOWN}};
    float limit = 0;
    for (size_t i = 0; i < XM_ARRAY_LEN(biases); i++) {
        const struct xm_value *bias = m->slot[biases[i][0]];
        if (bias && !is_bias(bias, m->slot[biases[i][1]]))
            return refuse(m, "a bias is not a constant [experts, 1, rows]");
    }
    if (m->slot[FACTOR] && !is_factor(m->slot[FACTOR], m->slot[W_DOWN]))
        return refuse(m, "the multiplier in front of the down projection is not one "
                         "constant for each column");
    if (!m->slot[CLAMPED])
        return true;
    xm_value_is_scalar_const(m->slot[LIMIT], &limit);
    const struct xm_node *clamp = m->slot[CLAMPED]->node;
    return (limit > 0 && (float)clamp->attr.clamp.max == limit &&
            (float)clamp->attr.clamp.min == -limit) ||
           refuse(m, "gate and up are clamped to different limits");
}

static bool
three_matmuls(struct xm_match *m)
{
    if (!block_holds(m, 1) || !xm_moe_is_expert_matmul(m, m->slot[UP], xm_moe_experts(m)))
        return false;
    if (m->slot[MOE_TILED]->n_uses != 2)
        return refuse(m, "operations other than gate and up read the tiled tokens");
    if (!xm_shape_eq(&m->slot[W_GATE]->type.shape, &m->slot[W_UP]->type.shape))
        return refuse(m, "gate and up weights differ in shape");
    return extras_hold(m);
}

static bool
two_matmuls(struct xm_match *m)
{
    const struct xm_value *gate = m->slot[GATE_PART], *up = m->slot[UP_PART];
    if (!xm_moe_is_gate_and_up(m, gate, up))
        return false;
    if (!xm_match_value(m, both_products, xm_in(gate->node, 0)))
        return refuse(m, "gate and up are not a product of the tiled tokens with a bias");
    if (!block_holds(m, 2))
        return false;
    if (m->slot[MOE_TILED]->n_uses != 1)
        return refuse(m, "operations other than the first product of the experts read "
                         "the tiled tokens");
    return extras_hold(m);
}

static void
describe(const struct xm_match *m, union xm_attr *attr)
{
    struct xm_moe_attr *a = &attr->moe;
    a->hidden = xm_last_dim(m->slot[MOE_X]);
    a->inter = xm_last_dim(m->slot[W_DOWN]);
    a->experts = xm_moe_experts(m);
    a->routing.top_k = xm_last_dim(m->slot[MOE_IDS]);
    if (m->slot[ACT])
        a->activation = (enum xm_activation)m->slot[ACT]->node->attr.glu.activation;
    if (m->slot[GATE_PART])
        a->gate_up = xm_moe_form_of(m->slot[GATE_PART], m->slot[UP_PART]);
    if (!m->slot[CLAMPED])
        return;
    a->up_add = 1.0f;
    xm_value_is_scalar_const(m->slot[BETA], &a->beta);
    xm_value_is_scalar_const(m->slot[LIMIT], &a->limit);
}

/* The factor as a constant [E,1,I]. */
static struct xm_value *
factor_rows(struct xm_builder *b, struct xm_match *m)
{
    const struct xm_shape *w = &m->slot[W_DOWN]->type.shape;
    const int64_t full[] = {w->dim[0].n, 1, w->dim[2].n};
    struct xm_value *factor = m->slot[FACTOR];
    if (!factor)
        return xm_none(b->graph);
    if (factor->type.shape.rank == 3 && xm_dim_is(factor->type.shape.dim[0], full[0]) &&
        xm_dim_is(factor->type.shape.dim[2], full[2]))
        return factor;
    return xm_const_of(
        b,
        xm_op_build(b, XM_OP_BROADCAST, NULL,
                    (struct xm_value *[]){factor, xm_const_ints(b, XM_I64, full, 3)}, 2));
}

/* clang-format off */
#define EXPERTS                                                                           \
    ONLY(-1, MOE, AT(XM_MOE_HIDDEN, VAR(MOE_X)), AT(XM_MOE_ROUTING, VAR(MOE_WEIGHTS)),    \
         AT(XM_MOE_IDS, VAR(MOE_IDS)), AT(XM_MOE_W_GATE, VAR(W_GATE)),                    \
         AT(XM_MOE_W_UP, VAR(W_UP)), AT(XM_MOE_W_DOWN, VAR(W_DOWN)),                      \
         AT(XM_MOE_BIAS_GATE, VAR(BIAS_GATE)), AT(XM_MOE_BIAS_UP, VAR(BIAS_UP)),          \
         AT(XM_MOE_BIAS_DOWN, VAR(BIAS_DOWN)), AT(XM_MOE_FACTOR, MAKE(factor_rows))),     \
    .attr = describe
/* Two rules: a form without a factor and with one. */
#define ROWS(name, down_of, h, holds)                                                     \
    { name, SUM_OF(down_of(h)), EXPERTS, .condition = holds },                            \
    { name " with a factor", SUM_OF(down_of(FACTORED(h))), EXPERTS, .condition = holds }
const struct xm_rule xm_rules_fuse_vectorized_moe_3gemm[] = {
    ROWS("three matmuls",             DOWN_OF,        UNIT(PRODUCT_G, PRODUCT_U), three_matmuls),
    ROWS("three biased matmuls",      BIASED_DOWN_OF, UNIT(BIASED_G, BIASED_U), three_matmuls),
    ROWS("three matmuls with limits", BIASED_DOWN_OF, CLAMPED_UNIT(BIASED_G, BIASED_U), three_matmuls),
    ROWS("two matmuls",               BIASED_DOWN_OF, CLAMPED_UNIT(VAR(GATE_PART), VAR(UP_PART)), two_matmuls),
    { .name = NULL },
};
/* clang-format on */
