/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared expert, which every token takes, joins its moe_compressed.
 *
 *     moe(x, ..) + glu(x Sg', x Su') Sd'                     ->  moe(x, .., Sg, Su, Sd)
 *     moe(x, ..) + glu(x Sg', x Su') Sd' sigmoid(x Sgg')     ->  moe(x, .., Sg, Su, Sd,
 * Sgg)
 *
 * in either order; reshapes between moe, shared expert and sum are passed through. Both
 * must read the same tokens, use the same activation, and have somebody to run them
 * together.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum {
    X,
    ACT,
    W_GATE,
    W_UP,
    W_DOWN,
    W_GATE_GATE,
    MLP,
    GATE_GATE,
    MATMULS,
    M_GATE = MATMULS,
    M_UP,
    M_DOWN
};

/* clang-format off */
static const struct xm_pat *const mlp =
    PN(M_DOWN, MATMUL, PN(ACT, GLU, PN(M_GATE, MATMUL, VAR(X), VAR(W_GATE)),
                                    PN(M_UP, MATMUL, VAR(X), VAR(W_UP))), VAR(W_DOWN));
static const struct xm_pat *const gated =
    P(MULTIPLY, VAR(MLP), P(SIGMOID, PN(GATE_GATE, MATMUL, VAR(X), VAR(W_GATE_GATE))));
/* clang-format on */

static struct xm_value *
skip_reshapes(struct xm_value *v)
{
    while (v->node->op == XM_OP_RESHAPE)
        v = xm_in(v->node, 0);
    return v;
}

static bool
is_linear(const struct xm_match *m, int matmul, int64_t rows, int64_t cols)
{
    const struct xm_node *n = m->slot[matmul]->node;
    const struct xm_value *w = xm_in(n, 1);
    return !n->attr.matmul.transpose_a && n->attr.matmul.transpose_b &&
           w->node->op == XM_OP_WEIGHT && w->type.shape.rank == 2 &&
           (rows < 0 || xm_dim_is(w->type.shape.dim[0], rows)) &&
           xm_dim_is(w->type.shape.dim[1], cols);
}

/* Finds the shared expert that computes v from the moe's tokens. */
static bool
match_shared(struct xm_match *m, const struct xm_node *moe, struct xm_value *v)
{
    const struct xm_moe_attr *a = &moe->attr.moe;
    const struct xm_value *hidden = xm_in(moe, XM_MOE_HIDDEN);
    v = skip_reshapes(v);
    if (xm_match_value(m, gated, v)) {
        if (!is_linear(m, GATE_GATE, 1, a->hidden) || v->n_uses != 1 ||
            m->slot[MLP]->n_uses != 1 || xm_last_dim(m->slot[MLP]) != a->hidden)
            return false;
        v = m->slot[MLP];
    }
    v = skip_reshapes(v);
    if (v->n_uses != 1 || !xm_match_value(m, mlp, v))
        return false;
    if (skip_reshapes(m->slot[X]) != skip_reshapes((struct xm_value *)hidden) ||
        xm_last_dim(m->slot[X]) != a->hidden ||
        m->slot[ACT]->node->attr.glu.activation != (int)a->activation)
        return false;
    int64_t inter = xm_last_dim(m->slot[ACT]);
    return inter > 0 && is_linear(m, M_GATE, inter, a->hidden) &&
           is_linear(m, M_UP, inter, a->hidden) && is_linear(m, M_DOWN, a->hidden, inter);
}

/* The value of a moe_compressed that can take a shared expert, below reshapes. */
static struct xm_node *
moe_below(struct xm_value *v)
{
    while (v->node->op == XM_OP_RESHAPE && v->n_uses == 1)
        v = xm_in(v->node, 0);
    struct xm_node *n = v->node;
    if (n->op != XM_OP_MOE_COMPRESSED || v->n_uses != 1 || n->attr.moe.shared ||
        (n->attr.moe.activation == XM_ACT_SWISH && n->attr.moe.beta != 1.0f))
        return NULL;
    return n;
}

static struct xm_value *
join(struct xm_builder *b, const struct xm_match *m, struct xm_node *moe,
     const struct xm_caps *caps)
{
    struct xm_value *in[XM_MOE_N_IN];
    union xm_attr attr = moe->attr;
    const char *why_not;
    for (uint32_t i = 0; i < XM_MOE_N_IN; i++)
        in[i] = xm_in(moe, i);
    in[XM_MOE_SHARED_GATE] = m->slot[W_GATE];
    in[XM_MOE_SHARED_UP] = m->slot[W_UP];
    in[XM_MOE_SHARED_DOWN] = m->slot[W_DOWN];
    if (m->slot[W_GATE_GATE])
        in[XM_MOE_SHARED_GATE_GATE] = m->slot[W_GATE_GATE];
    attr.moe.shared = 1;
    if (!xm_can_run(caps, XM_OP_MOE_COMPRESSED, &attr, in, XM_MOE_N_IN, &why_not))
        return NULL;
    return xm_op_build(b, XM_OP_MOE_COMPRESSED, &attr, in, XM_MOE_N_IN);
}

static bool
fuse_sum(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *add)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct xm_match m = {.graph = g, .caps = caps, .root = add};
        struct xm_node *moe = moe_below(xm_in(add, i));
        struct xm_value *shared = xm_in(add, 1 - i), *sum = &add->out[0], *y;
        if (!moe || !xm_shape_eq(&shared->type.shape, &sum->type.shape) ||
            !xm_shape_eq(&xm_in(add, i)->type.shape, &sum->type.shape) ||
            shared->n_uses != 1 || !match_shared(&m, moe, shared))
            continue;
        struct xm_builder b = xm_builder_before(g, add);
        y = xm_reshape_like(&b, join(&b, &m, moe, caps), &sum->type.shape);
        if (!y)
            return false;
        xm_value_replace(g, sum, y);
        xm_node_remove_dead(g, add);
        return true;
    }
    return false;
}

bool
xm_pass_fuse_moe_shared_expert(struct xm_graph *g, const struct xm_caps *caps)
{
    bool any = false;
    xm_for_each_node_safe(n, g)
    {
        if (n->op == XM_OP_ADD)
            any |= fuse_sum(g, caps, n);
        if (g->err.status != XM_OK)
            break;
    }
    return any;
}
