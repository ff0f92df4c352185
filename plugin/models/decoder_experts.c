/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectorised expert block, in the two forms that exporters write: with three dimensions and
 * routing weights [E,T,1], and with four ("R1") and routing weights [E,B,S,1]. The routing has
 * these steps (table of routings in docs/architectures.md):
 *
 *     scores = softmax(l) | sigmoid(l) | l | sqrt(softplus(l))          l = router(x) (+ bias)
 *     chosen = top-k of scores (+ choice bias), only within the best groups of experts
 *     weights = scores of the chosen experts | softmax over them
 *     weights / their sum, times a number, times a number for each expert
 */
#include <math.h>

#include "plugin/models/decoder_graph.h"

/* llama.cpp's lower limit for the sum of weights: the smallest normal f16. */
#define LEAST_SUM 6.103515625e-5f

static struct xm_value *
op2(struct xm_decoder_graph *s, enum xm_op op, struct xm_value *x, struct xm_value *y)
{
    return xm_op2(&s->b, op, x, y);
}

static struct xm_value *
ints(struct xm_decoder_graph *s, int n, int64_t a, int64_t b, int64_t c)
{
    const int64_t v[3] = {a, b, c};
    return xm_const_ints(&s->b, XM_I64, v, n);
}

static struct xm_value *
softmax(struct xm_decoder_graph *s, struct xm_value *x, int64_t axis)
{
    const union xm_attr attr = {.axis = {axis}};
    return xm_op_build(&s->b, XM_OP_SOFTMAX, &attr, &x, 1);
}

/* Finds the k largest elements of the last axis: out[0] has their values, out[1] their indices. */
static struct xm_node *
top_k(struct xm_decoder_graph *s, struct xm_value *x, uint32_t k)
{
    const union xm_attr attr = {
        .topk = {.axis = -1, .sort = XM_SORT_VALUE, .element = XM_I64}};
    struct xm_value *in[2] = {x, xm_dg_int(s, k)};
    return xm_node_build(&s->b, XM_OP_TOPK, &attr, in, 2);
}

static struct xm_value *
scatter(struct xm_decoder_graph *s, struct xm_value *into, struct xm_value *places,
        struct xm_value *values)
{
    struct xm_value *in[4] = {into, places, values, xm_dg_int(s, 1)};
    return xm_op_build(&s->b, XM_OP_SCATTER_ELEMENTS_UPDATE, NULL, in, 4);
}

static struct xm_value *
zeros(struct xm_decoder_graph *s, struct xm_value *shape)
{
    return xm_dg_broadcast(s, xm_const_float(&s->b, XM_F32, 0.0f), shape,
                           XM_BROADCAST_NUMPY);
}

/* ---- routing ------------------------------------------------------------------------- */

struct routing {
    struct xm_value *weights, *ids; /* [T,K] */
};

/* Returns the scores [T,E]. All of these functions are monotonic, so the order of experts stays
 * that of the logits. */
static struct xm_value *
scores_of(struct xm_decoder_graph *s, struct xm_value *logits)
{
    const bool r1 = s->form == XM_EXPERTS_R1;
    switch (s->d->gate) {
    case XM_GATE_SOFTMAX:
        return softmax(s, logits, r1 ? 1 : -1);
    case XM_GATE_SIGMOID:
        return xm_op1(&s->b, XM_OP_SIGMOID, logits);
    case XM_GATE_SQRT_SOFTPLUS:
        return xm_op1(&s->b, XM_OP_SQRT, xm_op1(&s->b, XM_OP_SOFTPLUS, logits));
    case XM_GATE_SOFTMAX_OF_CHOSEN:
    case XM_GATES:
        break;
    }
    return logits;
}

/* Returns f32 [T,K,n]: 1 in column ids[t,k], else 0 (one-hot). Values are selected by multiplying
 * with it, because devices have these operations; a scatter or gather of elements would run on the
 * host. */
static struct xm_value *
columns_of(struct xm_decoder_graph *s, struct xm_value *ids, uint32_t n)
{
    int64_t *columns = xm_arena_alloc(&s->g->arena, n * sizeof(*columns));
    if (!columns)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        columns[i] = i;
    struct xm_value *is_one = op2(s, XM_OP_EQUAL, xm_dg_unsqueeze(s, ids, -1),
                                  xm_const_ints(&s->b, XM_I64, columns, (int)n));
    return xm_convert(&s->b, is_one, XM_F32);
}

/* Returns the scores [T,E] of the experts ids [T,K]. */
static struct xm_value *
scores_at(struct xm_decoder_graph *s, struct xm_value *scores, struct xm_value *ids)
{
    struct xm_value *found = op2(s, XM_OP_MULTIPLY, columns_of(s, ids, s->d->experts),
                                 xm_dg_unsqueeze(s, scores, 1));
    return xm_dg_reduce_sum(s, found, -1, false);
}

/* Lowers the scores [T,E] of experts outside of the best groups below all others. A group is rated
 * by the sum of its two best experts if there is a choice bias, else by its best expert. */
static struct xm_value *
in_best_groups(struct xm_decoder_graph *s, struct xm_value *scores, bool has_bias)
{
    const struct xm_decoder *d = s->d;
    const int64_t apart[3] = {0, d->groups, d->experts / d->groups};
    const int64_t together[2] = {0, d->experts};
    struct xm_node *best = top_k(s, xm_dg_reshape(s, scores, true, 3, apart),
                                 has_bias && apart[2] > 1 ? 2 : 1);
    if (!best)
        return NULL;
    struct xm_value *worth = xm_dg_reduce_sum(s, &best->out[0], -1, false);
    struct xm_node *groups = top_k(s, worth, d->groups_used);
    if (!groups)
        return NULL;
    struct xm_value *is_best =
        xm_dg_reduce_sum(s, columns_of(s, &groups->out[1], d->groups), 1, false);
    struct xm_value *wide = xm_dg_broadcast(
        s, xm_dg_unsqueeze(s, is_best, -1),
        xm_dg_shape_of(s, xm_dg_reshape(s, scores, true, 3, apart), XM_I64),
        XM_BROADCAST_NUMPY);
    struct xm_value *mask =
        xm_convert(&s->b, xm_dg_reshape(s, wide, true, 2, together), XM_BOOL);
    return xm_dg_op3(s, XM_OP_SELECT, mask, scores,
                     xm_const_float(&s->b, XM_F32, -3.0e38f));
}

/* Chooses experts by scores with the choice bias or within groups; the weights are their plain
 * scores. */
static bool
choose_apart(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *scores,
             struct routing *r)
{
    const bool has_bias = xm_decoder_has(s->d, XM_TENSOR_CHOICE_BIAS, layer);
    struct xm_value *of_choice = scores;
    if (has_bias)
        of_choice =
            op2(s, XM_OP_ADD, scores, xm_dg_tensor(s, XM_TENSOR_CHOICE_BIAS, layer));
    if (s->d->groups > 1)
        of_choice = in_best_groups(s, of_choice, has_bias);
    struct xm_node *n = top_k(s, of_choice, s->d->experts_used);
    if (!n)
        return false;
    const union xm_attr last = {.axis = {1}};
    struct xm_value *in[2] = {scores, &n->out[1]};
    r->ids = &n->out[1];
    /* without groups, a pass makes the gather a part of the router */
    r->weights = s->d->groups > 1
                     ? scores_at(s, scores, r->ids)
                     : xm_op_build(&s->b, XM_OP_GATHER_ELEMENTS, &last, in, 2);
    return r->weights != NULL;
}

/* Divides the chosen weights by their sum. are_largest: the largest score is among them. */
static struct xm_value *
normalised(struct xm_decoder_graph *s, struct xm_value *weights, bool are_largest)
{
    const bool r1 = s->form == XM_EXPERTS_R1;
    const union xm_attr least = {.clamp = {LEAST_SUM, INFINITY}};
    struct xm_value *sum = xm_dg_reduce_sum(s, weights, r1 ? 1 : -1, true);
    /* a sum with the largest value of a softmax is at least 1 / experts */
    if (s->d->gate != XM_GATE_SOFTMAX || !are_largest)
        sum = xm_op_build(&s->b, XM_OP_CLAMP, &least, &sum, 1);
    return op2(s, XM_OP_DIVIDE, weights, sum);
}

static bool
route(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *tokens,
      struct routing *r)
{
    const struct xm_decoder *d = s->d;
    struct xm_value *logits =
        xm_dg_biased(s, XM_TENSOR_ROUTER, XM_TENSOR_ROUTER_BIAS, layer, tokens);
    struct xm_value *scores = scores_of(s, logits);
    const bool has_bias = xm_decoder_has(d, XM_TENSOR_CHOICE_BIAS, layer);
    if (d->groups > 1 || has_bias) {
        if (!choose_apart(s, layer, scores, r))
            return false;
    } else {
        struct xm_node *n = top_k(s, scores, d->experts_used);
        if (!n)
            return false;
        r->ids = &n->out[1];
        r->weights = &n->out[0];
    }
    if (d->gate == XM_GATE_SOFTMAX_OF_CHOSEN)
        r->weights = softmax(s, r->weights, -1);
    if ((d->traits & XM_TRAIT_NORMALISED) && d->gate != XM_GATE_SOFTMAX_OF_CHOSEN)
        r->weights = normalised(s, r->weights, !has_bias);
    if (d->weights_scale != 1.0f)
        r->weights = xm_dg_scale(s, r->weights, d->weights_scale);
    if (xm_decoder_has(d, XM_TENSOR_EXPERT_SCALE, layer))
        r->weights =
            op2(s, XM_OP_MULTIPLY, r->weights,
                xm_dg_op3(s, XM_OP_GATHER, xm_dg_tensor(s, XM_TENSOR_EXPERT_SCALE, layer),
                          r->ids, xm_dg_int(s, 0)));
    return r->weights != NULL;
}

/* Scatters the weights into zeros: dense [T,E], then transposed to [E,T]. */
static struct xm_value *
dense_routing(struct xm_decoder_graph *s, struct xm_value *zeros_shape,
              struct xm_value *ids, struct xm_value *weights, enum xm_element order)
{
    const int64_t swap[2] = {1, 0};
    struct xm_value *dense = scatter(s, zeros(s, zeros_shape), ids, weights);
    return op2(s, XM_OP_TRANSPOSE, dense, xm_const_ints(&s->b, order, swap, 2));
}

/* ---- experts: all tokens through all experts ---- */

/* min(g, 7) sigmoid(1.702 g') (clamp(u, -7, 7) + 1),  g' = min(g, 7) */
static struct xm_value *
clamped_swiglu(struct xm_decoder_graph *s, struct xm_value *gate, struct xm_value *up)
{
    struct xm_builder *b = &s->b;
    const float limit = 7.0f;
    const union xm_attr clamp = {.clamp = {-limit, limit}};
    struct xm_value *swish[2] = {
        op2(s, XM_OP_MINIMUM, gate, xm_const_float(b, XM_F32, limit)),
        xm_const_float(b, XM_F32, 1.702f)};
    struct xm_value *act = xm_op_build(b, XM_OP_SWISH, NULL, swish, 2);
    up = op2(s, XM_OP_ADD, xm_op_build(b, XM_OP_CLAMP, &clamp, &up, 1),
             xm_const_float(b, XM_F32, 1.0f));
    return op2(s, XM_OP_MULTIPLY, act, up);
}

/* Computes all experts: x [E,T,H] to [E,T,H]. */
static struct xm_value *
all_experts(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x)
{
    struct xm_value *gate =
        xm_dg_biased(s, XM_TENSOR_GATE_EXPS, XM_TENSOR_GATE_EXPS_BIAS, layer, x);
    struct xm_value *up =
        xm_dg_biased(s, XM_TENSOR_UP_EXPS, XM_TENSOR_UP_EXPS_BIAS, layer, x);
    struct xm_value *inner = s->d->traits & XM_TRAIT_CLAMPED_SWIGLU
                                 ? clamped_swiglu(s, gate, up)
                                 : op2(s, XM_OP_MULTIPLY, xm_dg_activation(s, gate), up);
    return xm_dg_biased(s, XM_TENSOR_DOWN_EXPS, XM_TENSOR_DOWN_EXPS_BIAS, layer, inner);
}

/* ---- the exporter's form ---- */

/* Returns weights[0 : shape(ids)], a slice of everything, which exporters' tracers leave in
 * graphs. */
static struct xm_value *
whole_slice(struct xm_decoder_graph *s, struct xm_value *weights, struct xm_value *ids)
{
    const int64_t zero[2] = {0, 0}, one[2] = {1, 1}, axes[2] = {0, 1};
    struct xm_builder *b = &s->b;
    struct xm_value *in[5] = {
        weights, xm_const_ints(b, XM_I32, zero, 2), xm_dg_shape_of(s, ids, XM_I32),
        xm_const_ints(b, XM_I32, one, 2), xm_const_ints(b, XM_I64, axes, 2)};
    return xm_op_build(b, XM_OP_SLICE, NULL, in, 5);
}

static struct xm_value *
exporter_form(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *tokens,
              struct xm_value *scored, struct xm_value *shape)
{
    const struct xm_decoder *d = s->d;
    const int64_t stacked[3] = {d->experts, -1, d->hidden},
                  same[3] = {d->experts, 0, d->hidden};
    const int64_t flat[2] = {d->experts, 0};
    struct routing r;
    struct xm_value *x = op2(s, XM_OP_TILE, tokens, ints(s, 2, d->experts, 1, 0));
    x = all_experts(s, layer, xm_dg_reshape(s, x, false, 3, stacked));
    x = xm_dg_reshape(s, x, true, 3, same);
    if (!route(s, layer, scored, &r))
        return NULL;
    struct xm_value *ids = xm_convert(&s->b, r.ids, XM_I32);
    struct xm_value *rows = xm_dg_op3(s, XM_OP_GATHER, xm_dg_shape_of(s, ids, XM_I64),
                                      xm_dg_one(s, 0), xm_dg_int(s, 0));
    struct xm_value *dims[2] = {rows, xm_dg_one(s, d->experts)};
    struct xm_value *dense = dense_routing(s, xm_dg_concat(s, 0, dims, 2), ids,
                                           whole_slice(s, r.weights, ids), XM_I32);
    dense = xm_dg_reshape(s, dense, true, 2, flat);
    dense = xm_dg_unsqueeze(s, dense, -1);
    x = xm_dg_reduce_sum(s, op2(s, XM_OP_MULTIPLY, x, dense), 0, false);
    return op2(s, XM_OP_RESHAPE, x, shape);
}

/* ---- R1 ---- */

/* Returns dimension `axis` of a shape as i64 [1]. */
static struct xm_value *
pick(struct xm_decoder_graph *s, struct xm_value *shape, int64_t axis)
{
    struct xm_value *scalar =
        xm_dg_op3(s, XM_OP_GATHER, shape, xm_dg_int(s, axis), xm_dg_int(s, 0));
    return op2(s, XM_OP_UNSQUEEZE, scalar, xm_dg_one(s, 0));
}

static struct xm_value *
r1_form(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *tokens,
        struct xm_value *scored, struct xm_value *shape)
{
    const struct xm_decoder *d = s->d;
    struct xm_value *e = xm_dg_one(s, d->experts), *h = xm_dg_one(s, d->hidden);
    struct xm_value *rest = xm_dg_one(s, -1), *batch = pick(s, shape, 0);
    struct routing r;
    if (!route(s, layer, scored, &r))
        return NULL;
    struct xm_value *rows = pick(s, xm_dg_shape_of(s, r.ids, XM_I64), 0);
    struct xm_value *x = op2(s, XM_OP_TILE, tokens, ints(s, 2, d->experts, 1, 0));
    struct xm_value *stacked[3] = {e, rows, h};
    x = all_experts(s, layer, op2(s, XM_OP_RESHAPE, x, xm_dg_concat(s, 0, stacked, 3)));
    struct xm_value *four[4] = {e, batch, rest, h}, *dense_dims[2] = {rows, e};
    x = op2(s, XM_OP_RESHAPE, x, xm_dg_concat(s, 0, four, 4));
    struct xm_value *dense =
        dense_routing(s, xm_dg_concat(s, 0, dense_dims, 2), r.ids, r.weights, XM_I64);
    struct xm_value *three[3] = {e, batch, rest};
    dense = op2(s, XM_OP_RESHAPE, dense, xm_dg_concat(s, 0, three, 3));
    dense = op2(s, XM_OP_UNSQUEEZE, dense, xm_dg_one(s, 3));
    return xm_dg_reduce_sum(s, op2(s, XM_OP_MULTIPLY, x, dense), 0, false);
}

/* ---- beside them ---- */

/* Adds the shared expert, which processes every token, to the routed experts. If the layer has a
 * switch w, the shared expert is multiplied by sigmoid(x w). */
static struct xm_value *
with_shared_expert(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x,
                   struct xm_value *experts)
{
    struct xm_value *gate =
        xm_dg_activation(s, xm_dg_product(s, XM_TENSOR_GATE_SHEXP, layer, x));
    struct xm_value *up = xm_dg_product(s, XM_TENSOR_UP_SHEXP, layer, x);
    struct xm_value *y =
        xm_dg_product(s, XM_TENSOR_DOWN_SHEXP, layer, op2(s, XM_OP_MULTIPLY, gate, up));
    if (xm_decoder_has(s->d, XM_TENSOR_SHEXP_SWITCH, layer)) {
        const struct xm_shape row = {2, {xm_dim_const(1), xm_dim_const(s->d->hidden)}};
        struct xm_value *w = xm_dg_tensor(s, XM_TENSOR_SHEXP_SWITCH, layer);
        w = w ? xm_const_as_f32(&s->b, w, &row) : NULL;
        y = op2(s, XM_OP_MULTIPLY, y,
                xm_op1(&s->b, XM_OP_SIGMOID, xm_matmul(&s->b, x, w, false, true)));
    }
    return op2(s, XM_OP_ADD, experts, y);
}

struct xm_value *
xm_dg_experts(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x,
              struct xm_value *scored)
{
    const int64_t rows[2] = {-1, s->d->hidden};
    struct xm_value *shape = xm_dg_shape_of(s, x, XM_I64);
    struct xm_value *tokens = xm_dg_reshape(s, x, false, 2, rows);
    struct xm_value *of_router =
        scored == x ? tokens : xm_dg_reshape(s, scored, false, 2, rows);
    struct xm_value *y = s->form == XM_EXPERTS_R1
                             ? r1_form(s, layer, tokens, of_router, shape)
                             : exporter_form(s, layer, tokens, of_router, shape);
    if (!xm_decoder_has(s->d, XM_TENSOR_GATE_SHEXP, layer))
        return y;
    return with_shared_expert(s, layer, x, y);
}
