/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the choice of experts one op, router, with two results: weights and ids.
 *
 *     topk(softmax(l))                                  ->  router(l)           softmax
 *     softmax(topk(l).weights)                          ->  router(l) softmax_topk
 *     gather(s, topk(s + bias).ids), s = sigmoid(l)     ->  router(l, bias) sigmoid_bias
 *     topk(s)                                           ->  router(l) sigmoid_bias
 *     r.weights / (sum(r.weights) + epsilon)            ->  router(..) normalised
 *     r.weights / max(sum(r.weights), least)            ->  router(..) normalised
 *     r.weights * gather(scale, r.ids)                  ->  router(.., scale)
 *     r.weights * number                                ->  router(..) scaled
 *
 * for each top-k whose ids a moe reads. Lines 3 and 4 hold for each row of routings.def with an
 * undivided weight; s are its scores. Each step is a rule on the router that earlier rules made. A
 * division may be written with a power of -1 or a reciprocal. Not done: choice within groups of
 * experts; the experts then take weights and ids.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum {
    LOGITS,
    SCORES,
    BIAS,
    TOPK,
    K,
    ROUTER,
    AXES,
    SUM,
    EPSILON,
    LEAST,
    CLAMPED,
    SCALE,
    AXIS,
    GATHERED
};

/* ---- conditions -------------------------------------------------------------------- */

static bool
is_moe(const struct xm_node *n)
{
    return n->op == XM_OP_MOE || n->op == XM_OP_MOE_COMPRESSED ||
           n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
}

static bool
moe_reads(const struct xm_value *ids)
{
    for (const struct xm_use *u = ids->uses; u; u = u->next)
        if (is_moe(u->user))
            return true;
    return false;
}

static bool
is_choice(struct xm_match *m)
{
    const struct xm_node *n = m->slot[TOPK]->node;
    const struct xm_shape *s = &xm_in(n, 0)->type.shape;
    if (!moe_reads(&n->out[1]))
        return refuse(m, "no experts read the ids");
    if (n->attr.topk.smallest || n->attr.topk.sort == XM_SORT_INDEX)
        return refuse(m,
                      "the top-k does not choose the largest values in order of value");
    if (s->rank != 2 || (n->attr.topk.axis != 1 && n->attr.topk.axis != -1))
        return refuse(m, "the top-k does not run over the axis of experts");
    return n->out[0].type.element == XM_F32 && xm_last_dim(&n->out[1]) > 0;
}

static bool
is_last_axis(const struct xm_value *v)
{
    return v->node->attr.axis.axis == 1 || v->node->attr.axis.axis == -1;
}

static bool
is_softmax_choice(struct xm_match *m)
{
    return is_choice(m) &&
           (is_last_axis(m->slot[SCORES]) ||
            refuse(m, "the softmax does not run over the axis of experts"));
}

/* The softmax over the chosen logits must be their only reader. */
static bool
is_softmax_of_choice(struct xm_match *m)
{
    return is_choice(m) &&
           (is_last_axis(&m->root->out[0]) ||
            refuse(m, "the softmax does not run over the chosen experts")) &&
           (m->slot[TOPK]->n_uses == 1 ||
            refuse(m, "other operations read the chosen logits"));
}

static bool
is_choice_of_scores(struct xm_match *m)
{
    if (!is_choice(m))
        return false;
    if (m->slot[TOPK]->node->out[0].n_uses)
        return refuse(m, "other operations read the biased scores of the chosen experts");
    if (!is_last_axis(&m->root->out[0]))
        return refuse(m,
                      "the routing weights are not gathered along the axis of experts");
    return !m->slot[BIAS] || xm_is_row(m->slot[BIAS], xm_last_dim(m->slot[LOGITS])) ||
           refuse(m, "the bias is not one constant for each expert");
}

static const struct xm_moe_routing *
router_of(const struct xm_match *m)
{
    return &m->slot[ROUTER]->node->attr.router;
}

/* Whether the router's weights have exactly n_uses uses, those that the rule replaces. */
static bool
owns_weights(struct xm_match *m, uint32_t n_uses)
{
    return m->slot[ROUTER]->node->out[0].n_uses == n_uses ||
           refuse(m, "other operations read the routing weights before this step");
}

static bool
is_normalisation(struct xm_match *m)
{
    const struct xm_moe_routing *r = router_of(m);
    if (r->normalise || r->scale != 1.0f || !xm_is_none(xm_in(m->slot[ROUTER]->node, 2)))
        return refuse(m, "the routing weights are normalised or scaled already");
    if (!m->slot[SUM]->node->attr.reduce.keep_dims || !xm_is_axis(m->slot[AXES], 2, 1))
        return refuse(m, "the sum does not run over the chosen experts");
    if (m->slot[CLAMPED] && m->slot[CLAMPED]->node->attr.clamp.max < (double)r->top_k)
        return refuse(m, "the sum of the routing weights is clamped to less than top_k");
    return owns_weights(m, 2);
}

static bool
is_expert_scale(struct xm_match *m)
{
    const struct xm_node *router = m->slot[ROUTER]->node;
    const struct xm_node *gather = m->slot[GATHERED]->node;
    if (xm_in(gather, 1) != &router->out[1])
        return refuse(m, "the expert scale is not gathered by the ids");
    if (!xm_is_none(xm_in(router, 2)) || gather->attr.gather.batch_dims != 0 ||
        m->slot[SCALE]->type.shape.rank != 1 || !xm_is_axis(m->slot[AXIS], 1, 0) ||
        !xm_is_row(m->slot[SCALE], xm_last_dim(xm_in(router, 0))))
        return refuse(m, "the expert scale is not one constant for each expert");
    return owns_weights(m, 1);
}

static bool
is_scale(struct xm_match *m)
{
    return xm_shape_eq(&m->slot[ROUTER]->type.shape, &m->root->out[0].type.shape) &&
           owns_weights(m, 1);
}

/* ---- replacements ------------------------------------------------------------------ */

static bool
takes_any_index(const struct xm_node *n)
{
    return is_moe(n) || n->op == XM_OP_GATHER;
}

/* Makes readers of the old ids read those of the router, which are i32: directly if they take any
 * integer type, else through a convert. */
static void
move_ids(struct xm_builder *b, struct xm_match *m, struct xm_value *weights)
{
    struct xm_value *old = &m->slot[m->slot[TOPK] ? TOPK : ROUTER]->node->out[1];
    while (weights->node->op != XM_OP_MOE_ROUTER) /* a convert may have been added */
        weights = xm_in(weights->node, 0);
    struct xm_value *ids = &weights->node->out[1], *other = NULL;
    for (struct xm_use *u = old->uses, *next; u; u = next) {
        struct xm_value *to = ids;
        next = u->next;
        if (ids->type.element != old->type.element && !takes_any_index(u->user)) {
            other = other ? other : xm_convert(b, ids, old->type.element);
            to = other;
        }
        if (!to)
            return;
        xm_node_set_in(u->user, xm_use_index(u), to);
    }
}

#define ROUTING_FORM(number, id, text, weight, divisor, chosen_by, scores)               \
    static void set_##id(const struct xm_match *m, union xm_attr *attr)                  \
    {                                                                                    \
        const int64_t top_k = xm_last_dim(&m->slot[TOPK]->node->out[1]);                 \
        attr->router = (struct xm_moe_routing){                                          \
            .kind = XM_ROUTING_##id, .top_k = top_k, .scale = 1.0f};                     \
    }
#include "kernels/cl/include/routings.def"

static void
set_normalisation(const struct xm_match *m, union xm_attr *attr)
{
    struct xm_moe_routing *r = &attr->router;
    r->normalise = true;
    if (m->slot[EPSILON])
        xm_value_is_scalar_const(m->slot[EPSILON], &r->epsilon);
    if (m->slot[LEAST])
        xm_value_is_scalar_const(m->slot[LEAST], &r->least_sum);
    if (m->slot[CLAMPED])
        r->least_sum = (float)m->slot[CLAMPED]->node->attr.clamp.min;
}

static void
set_scale(const struct xm_match *m, union xm_attr *attr)
{
    float factor = 1.0f;
    xm_value_is_scalar_const(m->slot[SCALE], &factor);
    attr->router.scale *= factor;
}

/* clang-format off */
#define WEIGHTS     ANY(ROUTER, 0, MOE_ROUTER)
#define WEIGHT_SUM  PN(SUM, REDUCE_SUM, VAR(ROUTER), INTS(AXES))
#define CHOICE(id)  P(MOE_ROUTER, VAR(LOGITS), FLAT(BIAS), ABSENT), .attr = set_##id, .then = move_ids
/* Rules for one form of routing (a row of routings.def), by its divisor. */
#define ONLY_SCORES(...) PN(SCORES, __VA_ARGS__)
#define SCORES_TOO(...)  PS(SCORES, __VA_ARGS__)
#define RULES_OVER_ALL(id, text, scores)                                                  \
    { "top-k of " text, PO(TOPK, 0, TOPK, ONLY_SCORES scores, INTS(K)),                               \
      CHOICE(id), .condition = is_softmax_choice },
#define RULES_OVER_CHOSEN(id, text, scores)                                               \
    { text, P(SOFTMAX, PO(TOPK, 0, TOPK, VAR(LOGITS), INTS(K))),                               \
      CHOICE(id), .condition = is_softmax_of_choice },
#define RULES_UNDIVIDED(id, text, scores)                                                 \
    { text ", with a bias",                                                               \
      P(GATHER_ELEMENTS, SCORES_TOO scores, PO(TOPK, 1, TOPK, P(ADD, VAR(SCORES), WEIGHT(BIAS)), INTS(K))), \
      CHOICE(id), .condition = is_choice_of_scores },                                     \
    { text ", gathered",                                                                  \
      P(GATHER_ELEMENTS, SCORES_TOO scores, PO(TOPK, 1, TOPK, VAR(SCORES), INTS(K))),                \
      CHOICE(id), .condition = is_choice_of_scores },                                     \
    { "top-k of " text, PO(TOPK, 0, TOPK, ONLY_SCORES scores, INTS(K)), CHOICE(id),         \
      .condition = is_choice },
/* Rules for a division by the sum of the weights. */
#define NORMALISED     WEIGHTS, .attr = set_normalisation, .condition = is_normalisation, .then = move_ids
#define NORMALISE(name, sum)                                                              \
    { name, P(DIVIDE, WEIGHTS, sum), NORMALISED },                                        \
    { name ", by a power", P(MULTIPLY, WEIGHTS, P(POWER, sum, SCALAR(-1))), NORMALISED }, \
    { name ", by a reciprocal", P(MULTIPLY, WEIGHTS, P(DIVIDE, SCALAR(1), sum)), NORMALISED }
const struct xm_rule xm_rules_fuse_moe_router[] = {
#define ROUTING_FORM(number, id, text, weight, divisor, chosen_by, scores) RULES_##divisor(id, text, scores)
#include "kernels/cl/include/routings.def"
    NORMALISE("normalise", WEIGHT_SUM),
    NORMALISE("normalise with epsilon", P(ADD, WEIGHT_SUM, NUMBER(EPSILON))),
    NORMALISE("normalise with clamp", PN(CLAMPED, CLAMP, WEIGHT_SUM)),
    NORMALISE("normalise with maximum", P(MAXIMUM, WEIGHT_SUM, NUMBER(LEAST))),
    { "expert scale",
      P(MULTIPLY, WEIGHTS, PN(GATHERED, GATHER, WEIGHT(SCALE), VAR(K), INTS(AXIS))),
      N(ROUTER, MOE_ROUTER, AT(2, FLAT(SCALE))), .condition = is_expert_scale, .then = move_ids },
    { "scale", P(MULTIPLY, WEIGHTS, NUMBER(SCALE)),
      WEIGHTS, .attr = set_scale, .condition = is_scale, .then = move_ids },
    { .name = NULL },
};
/* clang-format on */
