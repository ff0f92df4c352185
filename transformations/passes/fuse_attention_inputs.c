/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention takes the norms and the rotation of its inputs along.
 *
 *     attention(rope(rms_norm(q) q_gamma), rope(rms_norm(k) k_gamma), rms_norm(v) v_gamma, ..)
 *  -> attention(q, k, v, .., cos, sin, q_gamma, k_gamma, v_gamma)
 *
 * Each part may be missing; then nothing is taken for it. q and k are rotated by the same
 * tables, or, where K and V are another layer's, there is only q. What is taken has no other
 * users; k and v may come from one value, and then share its norm, which only k multiplies by
 * factors. Not done here: norms with different epsilons (those that differ from the first
 * found stay).
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

/* What stands before one input, from the outside in. */
struct steps {
    struct xm_node *rope, *norm;  /* NULL: none */
    const struct xm_value *gamma; /* of the norm */
};

static bool
is_lone(const struct xm_value *v, enum xm_op op)
{
    return v->node->op == op && v->n_uses == 1;
}

/* Whether gamma is a constant for each element of v's heads. */
static bool
is_for_heads(const struct xm_value *gamma, const struct xm_value *v)
{
    uint64_t n;
    return gamma->node->op == XM_OP_CONST && xm_static_elements(&gamma->type.shape, &n) &&
           (int64_t)n == xm_last_dim(v);
}

/* gamma rms_norm(x, ones): what remains of two norms of one x, when k and v come from it. */
static bool
find_shared_norm(const struct xm_value *v, struct steps *s)
{
    for (uint32_t i = 0; i < 2 && is_lone(v, XM_OP_MULTIPLY); i++) {
        const struct xm_value *normed = xm_in(v->node, i), *gamma = xm_in(v->node, 1 - i);
        if (normed->node->op != XM_OP_RMS_NORM || normed->n_uses > 2 ||
            !xm_is_filled(xm_in(normed->node, 1), 1.0f) || !is_for_heads(gamma, v) ||
            xm_last_dim(gamma) != xm_last_dim(v))
            continue;
        s->norm = normed->node;
        s->gamma = gamma;
        return true;
    }
    return false;
}

static void
find_norm(const struct xm_value *v, struct steps *s)
{
    if (find_shared_norm(v, s) || v->node->op != XM_OP_RMS_NORM)
        return;
    const struct xm_value *gamma = xm_in(v->node, 1);
    bool is_shared = v->n_uses == 2 && xm_is_filled(gamma, 1.0f);
    if ((v->n_uses == 1 || is_shared) && is_for_heads(gamma, v)) {
        s->norm = v->node;
        s->gamma = gamma;
    }
}

static struct steps
steps_before(const struct xm_value *v)
{
    struct steps s = {NULL, NULL, NULL};
    if (is_lone(v, XM_OP_ROPE)) {
        s.rope = v->node;
        v = xm_in(s.rope, 0);
    }
    find_norm(v, &s);
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
    if (xm_is_none(xm_in(attention, XM_ATTENTION_K)))
        return true;
    if (!q->rope != !k->rope)
        return false;
    return !q->rope || (is_same(xm_in(q->rope, 1), xm_in(k->rope, 1)) &&
                        is_same(xm_in(q->rope, 2), xm_in(k->rope, 2)));
}

/* Input i becomes what the norm reads; its factors become operand `gamma`. */
static bool
take_norm(struct xm_graph *g, struct xm_node *attention, uint32_t i, uint32_t gamma,
          const struct steps *s, bool *has_epsilon)
{
    struct xm_builder b = xm_builder_before(g, attention);
    const struct xm_node *norm = s->norm;
    float *epsilon = &attention->attr.attention.epsilon;
    if (!norm || (*has_epsilon && *epsilon != norm->attr.rms_norm.epsilon))
        return false;
    struct xm_value *factors = xm_const_flat(&b, s->gamma);
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
    xm_node_set_in(attention, XM_ATTENTION_COS, xm_in(q->rope, 1));
    xm_node_set_in(attention, XM_ATTENTION_SIN, xm_in(q->rope, 2));
    xm_node_set_in(attention, XM_ATTENTION_Q, xm_in(q->rope, 0));
    if (k->rope)
        xm_node_set_in(attention, XM_ATTENTION_K, xm_in(k->rope, 0));
}

static bool
fuse(struct xm_graph *g, struct xm_node *n)
{
    struct steps s[] = {steps_before(xm_in(n, XM_ATTENTION_Q)),
                        steps_before(xm_in(n, XM_ATTENTION_K)),
                        steps_before(xm_in(n, XM_ATTENTION_V))};
    bool has_epsilon = false, any = false;
    for (uint32_t i = XM_ATTENTION_COS; i < XM_ATTENTION_N_IN; i++) {
        if (!xm_is_none(xm_in(n, i)))
            return false; /* done before */
    }
    bool alike = rotates_alike(n, &s[0], &s[1]);
    if (alike && s[0].rope) {
        take_rotation(n, &s[0], &s[1]);
        any = true;
    }
    for (uint32_t i = 0; i < XM_ARRAY_LEN(s); i++) {
        bool stays = s[i].rope && (!alike || i == XM_ATTENTION_V);
        if (!stays)
            any |= take_norm(g, n, XM_ATTENTION_Q + i, XM_ATTENTION_Q_GAMMA + i, &s[i],
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
