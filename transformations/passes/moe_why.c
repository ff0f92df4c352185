/* SPDX-License-Identifier: Apache-2.0
 *
 * Why blocks of experts stay unfused: one sentence each, kept with the graph for the user.
 */
#include "transformations/passes/moe_block.h"

/* The node that ends the choice of experts, as far as it is none of ours: what makes the
 * weights, or the top-k behind the ids. */
static struct xm_node *
end_of_choice(const struct xm_node *moe)
{
    struct xm_node *weights = xm_in(moe, XM_MOE_ROUTING)->node;
    struct xm_node *ids = xm_in(moe, XM_MOE_IDS)->node;
    if (ids->op == XM_OP_CONVERT)
        ids = xm_in(ids, 0)->node;
    return ids->op == XM_OP_MOE_ROUTER ? weights : ids;
}

/* The sentence's end for a moe_compressed; *more adds what kept its routing from a router. */
static const char *
why_not_fused(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *moe,
              const char **more)
{
    const char *why = xm_moe_not_fused(g, caps, moe);
    struct xm_node *end = end_of_choice(moe);
    if (!*why || end->op == XM_OP_MOE_ROUTER)
        return why;
    *more = xm_router_near_miss(g, caps, end);
    if (!**more)
        *more = end->op == XM_OP_TOPK ? "left out by XM_SKIP"
                                      : "no top-k ends the choice of the experts";
    return why;
}

static void
note(struct xm_graph *g, const struct xm_node *n, const char *pass, const char *why,
     const char *more)
{
    struct xm_note *note = xm_arena_alloc(&g->arena, sizeof(*note));
    const char *text = xm_arena_printf(&g->arena, "'%.120s' is not fused: %s: %s%s%s",
                                       n->name, pass, *why ? why : "left out by XM_SKIP",
                                       *more ? "; FuseMoERouter: " : "", more);
    if (!note || !text)
        return; /* who is that short of memory hears of it soon */
    *note = (struct xm_note){text, g->notes};
    g->notes = note;
}

void
xm_moe_note_unfused(struct xm_graph *g, const struct xm_caps *caps)
{
    xm_for_each_node(n, g)
    {
        const char *more = "";
        struct xm_node *sum;
        if (n->op == XM_OP_MOE) {
            note(g, n, "ConvertMOEToMOECompressed", xm_moe_not_compressed(g, caps, n),
                 more);
        } else if (n->op == XM_OP_MOE_COMPRESSED) {
            const char *why = why_not_fused(g, caps, n, &more);
            note(g, n, "FuseMOE3GemmCompressed", why, more);
        } else if (n->op == XM_OP_TILE && xm_moe_feeds_experts(n)) {
            sum = xm_moe_sum_behind(n);
            if (sum)
                note(g, sum, "FuseVectorizedMOE3GEMM", xm_moe_near_miss(g, sum), more);
        }
    }
}
