/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns a family if every layer has a combination of features that no other family's layers have.
 * Most families differ only in sizes; for these the result is NULL.
 */
#include "plugin/model_family.h"

/* Whether the attention has sinks. */
static bool
has_sinks(const struct xm_node *attention)
{
    return !xm_is_none(xm_in(attention, XM_ATTENTION_SINKS));
}

/* Whether scores are not divided by sqrt(head size). */
static bool
is_unscaled(const struct xm_node *attention)
{
    return attention->attr.attention.scale == 1.0f;
}

/* Whether the experts compute min(g, 7) sigmoid(1.702 g) (clamp(u, -7, 7) + 1), with biases. */
static bool
is_clamped_swiglu(const struct xm_node *experts)
{
    const struct xm_moe_attr *a = &experts->attr.moe;
    return a->activation == XM_ACT_SWISH && a->limit > 0.0f && a->up_add == 1.0f &&
           !xm_is_none(xm_in(experts, XM_MOE_BIAS_GATE));
}

/* Whether the experts use GELU and a scale for each expert. */
static bool
is_scaled_gelu(const struct xm_node *experts)
{
    return experts->attr.moe.activation == XM_ACT_GELU_TANH &&
           !xm_is_none(xm_in(experts, XM_MOE_EXPERT_SCALE));
}

static const struct family {
    const char *model_type;
    bool (*is_its_attention)(const struct xm_node *attention);
    bool (*is_its_experts)(const struct xm_node *experts);
} families[] = {
    {"gpt_oss", has_sinks, is_clamped_swiglu},
    {"gemma4_text", is_unscaled, is_scaled_gelu},
};

static bool
is_of(const struct family *f, const struct xm_graph *g)
{
    bool attends = false, routes = false;
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_ATTENTION) {
            attends = true;
            if (!f->is_its_attention(n))
                return false;
        } else if (n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED) {
            routes = true;
            if (!f->is_its_experts(n))
                return false;
        }
    }
    return attends && routes;
}

const char *
xm_model_family(const struct xm_graph *g)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(families); i++)
        if (is_of(&families[i], g))
            return families[i].model_type;
    return NULL;
}
