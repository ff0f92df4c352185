/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention takes the norms and the rotation of its inputs along.
 *
 *     attention(rope(rms_norm(q) q_gamma), rope(rms_norm(k) k_gamma), rms_norm(v) v_gamma, ..)
 *  -> attention(q, k, v, .., cos, sin, q_gamma, k_gamma, v_gamma)
 *
 * Each part may be missing; then nothing is taken for it. q and k are rotated by the same
 * tables, or, where K and V are another layer's, there is only q. What is taken has no other
 * users; k and v may come from one value. Not done here: norms with different epsilons (those
 * that differ from the first found stay).
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

/* What stands before one input, from the outside in. */
struct steps {
    struct xm_node *rope, *norm; /* NULL: none */
};

static bool
is_lone(const struct xm_value *v, enum xm_op op)
{
    return v->node->op == op && v->n_uses == 1;
}

/* A norm over the heads, by a constant for each of their elements. */
static bool
is_head_norm(const struct xm_value *v)
{
    uint64_t n;
    if (!is_lone(v, XM_OP_RMS_NORM))
        return false;
    const struct xm_value *gamma = xm_in(v->node, 1);
    return gamma->node->op == XM_OP_CONST && xm_static_elements(&gamma->type.shape, &n) &&
           (int64_t)n == xm_last_dim(v);
}

static struct steps
steps_before(const struct xm_value *v)
{
    struct steps s = {NULL, NULL};
    if (is_lone(v, XM_OP_ROPE)) {
        s.rope = v->node;
        v = xm_in(s.rope, 0);
    }
    if (is_head_norm(v))
        s.norm = v->node;
    return s;
}

/* Equal, or two reshapes of one value to the same shape. */
static bool
is_same(const struct xm_value *a, const struct xm_value *b)
{
    if (!xm_shape_eq(&a->type.shape, &b->type.shape))
        return false;
    while (a->node->op == XM_OP_RESHAPE)
        a = xm_in(a->node, 0);
    while (b->node->op == XM_OP_RESHAPE)
        b = xm_in(b->node, 0);
    return a == b;
}

/* Whether the rotations can be taken: both, by the same tables. A norm before a rotation that
 * stays must stay, too. */
static bool
rotates_alike(const struct xm_node *attention, const struct steps *q,
              const struct steps *k)
{
    if (xm_is_none(xm_in(attention, XM_ATTN_K)))
        return true;
    if (!q->rope != !k->rope)
        return false;
    return !q->rope || (is_same(xm_in(q->rope, 1), xm_in(k->rope, 1)) &&
                        is_same(xm_in(q->rope, 2), xm_in(k->rope, 2)));
}

/* Input i becomes what the norm reads; its factors become operand `gamma`. */
static bool
take_norm(struct xm_graph *g, struct xm_node *attention, uint32_t i, uint32_t gamma,
          struct xm_node *norm, bool *has_epsilon)
{
    struct xm_builder b = xm_builder_before(g, attention);
    float *epsilon = &attention->attr.attention.epsilon;
    if (!norm || (*has_epsilon && *epsilon != norm->attr.rms_norm.epsilon))
        return false;
    struct xm_value *factors = xm_const_flat(&b, xm_in(norm, 1));
    if (!factors)
        return false;
    *epsilon = norm->attr.rms_norm.epsilon;
    *has_epsilon = true;
    xm_node_set_in(attention, i, xm_in(norm, 0));
    xm_node_set_in(attention, gamma, factors);
    return true;
}

static void
take_rotation(struct xm_node *attention, const struct steps *q, const struct steps *k)
{
    xm_node_set_in(attention, XM_ATTN_COS, xm_in(q->rope, 1));
    xm_node_set_in(attention, XM_ATTN_SIN, xm_in(q->rope, 2));
    xm_node_set_in(attention, XM_ATTN_Q, xm_in(q->rope, 0));
    if (k->rope)
        xm_node_set_in(attention, XM_ATTN_K, xm_in(k->rope, 0));
}

static bool
fuse(struct xm_graph *g, struct xm_node *n)
{
    struct steps s[] = {steps_before(xm_in(n, XM_ATTN_Q)),
                        steps_before(xm_in(n, XM_ATTN_K)),
                        steps_before(xm_in(n, XM_ATTN_V))};
    bool has_epsilon = false, any = false;
    for (uint32_t i = XM_ATTN_COS; i < XM_ATTN_N_IN; i++) {
        if (!xm_is_none(xm_in(n, i)))
            return false; /* done before */
    }
    bool alike = rotates_alike(n, &s[0], &s[1]);
    if (alike && s[0].rope) {
        take_rotation(n, &s[0], &s[1]);
        any = true;
    }
    for (uint32_t i = 0; i < XM_ARRAY_LEN(s); i++) {
        bool stays = s[i].rope && (!alike || i == XM_ATTN_V);
        if (!stays)
            any |= take_norm(g, n, XM_ATTN_Q + i, XM_ATTN_Q_GAMMA + i, s[i].norm,
                             &has_epsilon);
    }
    return any;
}

bool
xm_pass_fuse_attention_inputs(struct xm_graph *g, const struct xm_caps *caps)
{
    bool any = false;
    (void)caps;
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_ATTENTION)
            any |= fuse(g, n);
        if (g->err.status != XM_OK)
            break;
    }
    return any;
}
