/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectorised expert block, in the two forms that exporters write: three dimensions with the
 * routing weights as [E,T,1], and four ("R1") with [E,B,S,1].
 */
#include "plugin/writers/synth.h"

static struct xm_value *
op2(struct xm_synth *s, enum xm_op op, struct xm_value *x, struct xm_value *y)
{
    return xm_op2(&s->b, op, x, y);
}

static struct xm_value *
ints(struct xm_synth *s, int n, int64_t a, int64_t b, int64_t c)
{
    const int64_t v[3] = {a, b, c};
    return xm_synth_ints(s, XM_I64, n, v);
}

static struct xm_value *
reduce_sum(struct xm_synth *s, struct xm_value *x, int64_t axis, bool keep)
{
    struct xm_value *in[2] = {x, ints(s, 1, axis, 0, 0)};
    const union xm_attr attr = {.reduce = {keep}};
    return xm_synth_op(s, XM_OP_REDUCE_SUM, &attr, in, 2);
}

/* ---- routing: softmax, top-k, weights that sum to one ---- */

struct routing {
    struct xm_value *weights, *ids; /* [T,K] */
};

static bool
route(struct xm_synth *s, struct xm_value *tokens, struct routing *r)
{
    const struct xm_synthetic *m = s->m;
    struct xm_value *w =
        xm_synth_weight(s, "gate", 0, m->experts, m->hidden, m->weights, m->group);
    struct xm_value *logits = xm_matmul(&s->b, tokens, w, false, true);
    const union xm_attr softmax = {.axis = {m->r1 ? 1 : -1}};
    const union xm_attr topk = {
        .topk = {.axis = -1, .sort = XM_SORT_VALUE, .element = XM_I64}};
    struct xm_value *in[2] = {xm_synth_op(s, XM_OP_SOFTMAX, &softmax, &logits, 1),
                              xm_synth_int(s, XM_I64, m->top_k)};
    struct xm_node *n = xm_node_build(&s->b, XM_OP_TOPK, &topk, in, 2);
    if (!n)
        return false;
    r->ids = &n->out[1];
    r->weights =
        op2(s, XM_OP_DIVIDE, &n->out[0], reduce_sum(s, &n->out[0], m->r1 ? 1 : -1, true));
    return r->weights != NULL;
}

/* A scatter of the weights into zeros: dense [T,E], then [E,T]. */
static struct xm_value *
dense_routing(struct xm_synth *s, struct xm_value *zeros_shape, struct xm_value *ids,
              struct xm_value *weights, enum xm_element order)
{
    struct xm_value *zeros_in[2] = {xm_const_float(&s->b, XM_F32, 0.0f), zeros_shape};
    const union xm_attr numpy = {.broadcast = {XM_BROADCAST_NUMPY}};
    struct xm_value *in[4] = {xm_synth_op(s, XM_OP_BROADCAST, &numpy, zeros_in, 2), ids,
                              weights, xm_synth_int(s, XM_I64, 1)};
    struct xm_value *dense = xm_synth_op(s, XM_OP_SCATTER_ELEMENTS_UPDATE, NULL, in, 4);
    const int64_t swap[2] = {1, 0};
    return op2(s, XM_OP_TRANSPOSE, dense, xm_synth_ints(s, order, 2, swap));
}

/* ---- experts: all tokens through all experts ---- */

/* x [E,T,H] to [E,T,H]. */
static struct xm_value *
experts(struct xm_synth *s, struct xm_value *x)
{
    const struct xm_synthetic *m = s->m;
    uint32_t e = m->experts, i = m->moe_intermediate, h = m->hidden;
    struct xm_value *gate =
        xm_synth_weight(s, "experts.gate", e, i, h, m->weights, m->group);
    struct xm_value *up = xm_synth_weight(s, "experts.up", e, i, h, m->weights, m->group);
    struct xm_value *down =
        xm_synth_weight(s, "experts.down", e, h, i, m->weights, m->group);
    struct xm_value *act =
        xm_op1(&s->b, XM_OP_SWISH, xm_matmul(&s->b, x, gate, false, true));
    struct xm_value *inner =
        op2(s, XM_OP_MULTIPLY, act, xm_matmul(&s->b, x, up, false, true));
    return xm_matmul(&s->b, inner, down, false, true);
}

/* ---- the exporter's form ---- */

/* weights[0 : shape(ids)]: a slice that takes everything, as the tracer leaves it. */
static struct xm_value *
whole_slice(struct xm_synth *s, struct xm_value *weights, struct xm_value *ids)
{
    const int64_t zero[2] = {0, 0}, one[2] = {1, 1}, axes[2] = {0, 1};
    struct xm_value *in[5] = {
        weights, xm_synth_ints(s, XM_I32, 2, zero), xm_synth_shape_of(s, ids, XM_I32),
        xm_synth_ints(s, XM_I32, 2, one), xm_synth_ints(s, XM_I64, 2, axes)};
    return xm_synth_op(s, XM_OP_SLICE, NULL, in, 5);
}

static struct xm_value *
exporter_form(struct xm_synth *s, const struct xm_synth_inputs *in,
              struct xm_value *tokens)
{
    const struct xm_synthetic *m = s->m;
    const int64_t stacked[3] = {m->experts, -1, m->hidden},
                  same[3] = {m->experts, 0, m->hidden};
    const int64_t flat[2] = {m->experts, 0};
    struct routing r;
    struct xm_value *x = op2(s, XM_OP_TILE, tokens, ints(s, 2, m->experts, 1, 0));
    x = experts(s, xm_synth_reshape(s, x, false, 3, stacked));
    x = xm_synth_reshape(s, x, true, 3, same);
    if (!route(s, tokens, &r))
        return NULL;
    struct xm_value *ids = xm_convert(&s->b, r.ids, XM_I32);
    struct xm_value *rows_in[3] = {xm_synth_shape_of(s, ids, XM_I64), ints(s, 1, 0, 0, 0),
                                   xm_synth_int(s, XM_I64, 0)};
    struct xm_value *zeros[2] = {xm_synth_op(s, XM_OP_GATHER, NULL, rows_in, 3),
                                 ints(s, 1, m->experts, 0, 0)};
    struct xm_value *dense = dense_routing(s, xm_synth_concat(s, 0, zeros, 2), ids,
                                           whole_slice(s, r.weights, ids), XM_I32);
    dense = xm_synth_reshape(s, dense, true, 2, flat);
    dense = op2(s, XM_OP_UNSQUEEZE, dense, xm_synth_int(s, XM_I64, -1));
    x = reduce_sum(s, op2(s, XM_OP_MULTIPLY, x, dense), 0, false);
    return op2(s, XM_OP_RESHAPE, x, in->hidden_shape);
}

/* ---- R1 ---- */

/* Dimension `axis` of shape as i64 [1]. */
static struct xm_value *
pick(struct xm_synth *s, struct xm_value *shape, int64_t axis)
{
    struct xm_value *in[3] = {shape, xm_synth_int(s, XM_I64, axis),
                              xm_synth_int(s, XM_I64, 0)};
    struct xm_value *scalar = xm_synth_op(s, XM_OP_GATHER, NULL, in, 3);
    return op2(s, XM_OP_UNSQUEEZE, scalar, ints(s, 1, 0, 0, 0));
}

static struct xm_value *
r1_form(struct xm_synth *s, const struct xm_synth_inputs *in, struct xm_value *tokens)
{
    const struct xm_synthetic *m = s->m;
    struct xm_value *e = ints(s, 1, m->experts, 0, 0), *h = ints(s, 1, m->hidden, 0, 0);
    struct xm_value *rest = ints(s, 1, -1, 0, 0), *batch = pick(s, in->hidden_shape, 0);
    struct routing r;
    if (!route(s, tokens, &r))
        return NULL;
    struct xm_value *rows = pick(s, xm_synth_shape_of(s, r.ids, XM_I64), 0);
    struct xm_value *x = op2(s, XM_OP_TILE, tokens, ints(s, 2, m->experts, 1, 0));
    struct xm_value *stacked[3] = {e, rows, h};
    x = experts(s, op2(s, XM_OP_RESHAPE, x, xm_synth_concat(s, 0, stacked, 3)));
    struct xm_value *four[4] = {e, batch, rest, h}, *dense_dims[2] = {rows, e};
    x = op2(s, XM_OP_RESHAPE, x, xm_synth_concat(s, 0, four, 4));
    struct xm_value *dense =
        dense_routing(s, xm_synth_concat(s, 0, dense_dims, 2), r.ids, r.weights, XM_I64);
    struct xm_value *three[3] = {e, batch, rest};
    dense = op2(s, XM_OP_RESHAPE, dense, xm_synth_concat(s, 0, three, 3));
    dense = op2(s, XM_OP_UNSQUEEZE, dense, ints(s, 1, 3, 0, 0));
    return reduce_sum(s, op2(s, XM_OP_MULTIPLY, x, dense), 0, false);
}

struct xm_value *
xm_synth_moe(struct xm_synth *s, struct xm_synth_inputs *in, uint32_t layer,
             struct xm_value *x)
{
    (void)layer;
    const int64_t rows[2] = {-1, s->m->hidden};
    struct xm_value *tokens = xm_synth_reshape(s, x, false, 2, rows);
    if (!in->hidden_shape)
        in->hidden_shape = xm_synth_shape_of(s, x, XM_I64);
    return s->m->r1 ? r1_form(s, in, tokens) : exporter_form(s, in, tokens);
}
