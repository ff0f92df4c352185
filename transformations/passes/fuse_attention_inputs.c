/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves norms and rotation of attention's inputs into the attention node.
 *
 *     attention(rope(q), rope(k), v, ..)          ->  attention(q, k, v, .., cos, sin)
 *     attention(.., rms_norm(x) gamma, ..)        ->  attention(.., x, .., gamma)
 *
 * The second rule holds for q, k and v, before a rotation that was moved. q and k must be rotated
 * by the same tables; if K and V belong to another layer, only q is rotated. A norm or rotation
 * that is moved has no other users. k and v may come from one value: then they share its norm, and
 * only k multiplies it by factors. Not done: norms with different epsilons; the first that is found
 * is moved, others stay.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { ATTENTION, Q, Q_COS, Q_SIN, K, K_COS, K_SIN, X, NORM, ONES, GAMMA };

/* Whether a and b are the same value, or reshapes of one value to the same shape. */
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

static bool
rotates_alike(struct xm_match *m)
{
    m->why = "q and k are rotated by different tables";
    return is_same(m->slot[Q_COS], m->slot[K_COS]) &&
           is_same(m->slot[Q_SIN], m->slot[K_SIN]);
}

/* Whether gamma is a constant with a number for each element of a head, and epsilon that of the
 * attention's other norms. */
static bool
is_norm_of_heads(struct xm_match *m)
{
    uint64_t n;
    const struct xm_value *gamma = m->slot[GAMMA];
    m->why = "the weight of the norm is not one constant for each element of a head";
    if (gamma->node->op != XM_OP_CONST || !xm_static_elements(&gamma->type.shape, &n) ||
        (int64_t)n != xm_last_dim(m->slot[X]))
        return false;
    m->why = "the norms of one attention have different epsilons";
    for (uint32_t i = XM_ATTENTION_Q_GAMMA; i <= XM_ATTENTION_V_GAMMA; i++) {
        if (!xm_is_none(xm_in(m->root, i)) &&
            m->root->attr.attention.epsilon != m->slot[NORM]->node->attr.rms_norm.epsilon)
            return false;
    }
    return true;
}

/* A norm without factors may have two users, k and v. */
static bool
is_norm(struct xm_match *m)
{
    uint32_t most = xm_is_filled(m->slot[GAMMA], 1.0f) ? 2 : 1;
    m->why = "other operations read the norm";
    return m->slot[NORM]->n_uses <= most && is_norm_of_heads(m);
}

/* gamma rms_norm(x, ones): the form of k's norm if k and v come from one x, whose norm they
 * share. */
static bool
is_factor_of_norm(struct xm_match *m)
{
    m->why = "other operations read the norm, or it has a weight already";
    return m->slot[NORM]->n_uses <= 2 && xm_is_filled(m->slot[ONES], 1.0f) &&
           xm_last_dim(m->slot[GAMMA]) == xm_last_dim(m->slot[X]) && is_norm_of_heads(m);
}

static void
set_epsilon(const struct xm_match *m, union xm_attr *attr)
{
    attr->attention.epsilon = m->slot[NORM]->node->attr.rms_norm.epsilon;
}

/* clang-format off */
#define ROTATED(x) AT(XM_ATTENTION_##x, P(ROPE, VAR(x), VAR(x##_COS), VAR(x##_SIN)))
#define UNROTATED AT(XM_ATTENTION_COS, ABSENT), AT(XM_ATTENTION_Q_GAMMA, ABSENT), AT(XM_ATTENTION_K_GAMMA, ABSENT)
#define TABLES AT(XM_ATTENTION_Q, VAR(Q)), AT(XM_ATTENTION_COS, VAR(Q_COS)), AT(XM_ATTENTION_SIN, VAR(Q_SIN))
#define NORM_OF(x)                                                                         \
    { "norm of " #x,                                                                       \
      N(ATTENTION, ATTENTION, AT(XM_ATTENTION_##x##_GAMMA, ABSENT),                             \
        AT(XM_ATTENTION_##x, PS(NORM, RMS_NORM, VAR(X), VAR(GAMMA)))),                          \
      N(ATTENTION, ATTENTION, AT(XM_ATTENTION_##x, VAR(X)), AT(XM_ATTENTION_##x##_GAMMA, FLAT(GAMMA))), \
      .attr = set_epsilon, .condition = is_norm },                                         \
    { "norm weight of " #x,                                                                    \
      N(ATTENTION, ATTENTION, AT(XM_ATTENTION_##x##_GAMMA, ABSENT),                             \
        AT(XM_ATTENTION_##x, P(MULTIPLY, PS(NORM, RMS_NORM, VAR(X), VAR(ONES)), WEIGHT(GAMMA)))), \
      N(ATTENTION, ATTENTION, AT(XM_ATTENTION_##x, VAR(X)), AT(XM_ATTENTION_##x##_GAMMA, FLAT(GAMMA))), \
      .attr = set_epsilon, .condition = is_factor_of_norm }
const struct xm_rule xm_rules_fuse_attention_inputs[] = {
    { "rotation",
      N(ATTENTION, ATTENTION, ROTATED(Q), ROTATED(K), UNROTATED),
      N(ATTENTION, ATTENTION, TABLES, AT(XM_ATTENTION_K, VAR(K))), .condition = rotates_alike },
    { "rotation of q",
      N(ATTENTION, ATTENTION, ROTATED(Q), AT(XM_ATTENTION_K, ABSENT), UNROTATED),
      N(ATTENTION, ATTENTION, TABLES), .condition = NULL },
    NORM_OF(Q),
    NORM_OF(K),
    NORM_OF(V),
    { .name = NULL },
};
/* clang-format on */
