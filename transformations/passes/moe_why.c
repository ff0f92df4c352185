/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes for the user: why expert blocks were not fused, one sentence for each.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/pipeline.h"

enum { MAX_DEPTH = 24 }; /* most operations between tiled tokens and the sum */

/* Whether the copies of a tile are multiplied by weights of several experts. */
static bool
feeds_experts(const struct xm_node *tile)
{
    for (const struct xm_use *u = tile->out[0].uses; u; u = u->next) {
        if (u->user->op != XM_OP_RESHAPE)
            continue;
        for (const struct xm_use *v = u->user->out[0].uses; v; v = v->next)
            if (v->user->op == XM_OP_MATMUL && xm_in(v->user, 1)->type.shape.rank == 3 &&
                xm_value_is_const(xm_in(v->user, 1)))
                return true;
    }
    return false;
}

/* Finds the sum that ends the expert block which a tile begins, by following first users. NULL:
 * none. */
static struct xm_node *
sum_behind(struct xm_node *n)
{
    for (int i = 0; i < MAX_DEPTH && n->out[0].uses; i++) {
        n = n->out[0].uses->user;
        if (n->op == XM_OP_REDUCE_SUM)
            return n;
    }
    return NULL;
}

/* The last node of the choice of experts that FuseMoERouter has not replaced: the one that computes
 * the weights, or the top-k of the ids. */
static struct xm_node *
end_of_choice(const struct xm_node *moe)
{
    struct xm_node *weights = xm_in(moe, XM_MOE_ROUTING)->node;
    struct xm_node *ids = xm_in(moe, XM_MOE_IDS)->node;
    if (ids->op == XM_OP_CONVERT)
        ids = xm_in(ids, 0)->node;
    return ids->op == XM_OP_MOE_ROUTER ? weights : ids;
}

static void
add_note(struct xm_graph *g, const char *text)
{
    struct xm_note *note = xm_arena_alloc(&g->arena, sizeof(*note));
    if (!note || !text)
        return; /* other allocations will fail and report it    */
    *note = (struct xm_note){text, g->notes};
    g->notes = note;
}

static void
note(struct xm_graph *g, struct xm_node *n, const char *pass, const struct xm_rule *rules,
     const struct xm_caps *caps)
{
    const char *why = xm_rewrite_near_miss(rules, g, caps, n);
    add_note(g, xm_arena_printf(&g->arena, "'%.120s' is not fused: %s: %s", n->name, pass,
                                *why ? why : "the pass is excluded by XM_SKIP"));
}

/* Notes why the routing of fused experts is not fused: it takes launches of its own. */
static void
note_routing(struct xm_graph *g, const struct xm_caps *caps, const struct xm_node *moe)
{
    struct xm_node *end = end_of_choice(moe);
    if (end->op == XM_OP_MOE_ROUTER)
        return;
    const char *why = xm_rewrite_near_miss(xm_rules_fuse_moe_router, g, caps, end);
    if (!*why)
        why = end->op == XM_OP_TOPK ? "the pass is excluded by XM_SKIP"
                                    : "no top-k chooses the experts";
    add_note(g, xm_arena_printf(&g->arena,
                                "the routing of '%.120s' is not fused: FuseMoERouter: %s",
                                moe->name, why));
}

void
xm_moe_note_unfused(struct xm_graph *g, const struct xm_caps *caps)
{
    xm_for_each_node(n, g)
    {
        struct xm_node *sum;
        if (n->op == XM_OP_MOE) {
            note(g, n, "ConvertMOEToMOECompressed",
                 xm_rules_convert_moe_to_moe_compressed, caps);
        } else if (n->op == XM_OP_MOE_COMPRESSED) {
            note(g, n, "FuseMOE3GemmCompressed", xm_rules_fuse_moe_3gemm_compressed,
                 caps);
        } else if (n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED &&
                   !xm_is_none(xm_in(n, XM_MOE_IDS))) {
            note_routing(g, caps, n);
        } else if (n->op == XM_OP_TILE && feeds_experts(n)) {
            sum = sum_behind(n);
            if (sum)
                note(g, sum, "FuseVectorizedMOE3GEMM", xm_rules_fuse_vectorized_moe_3gemm,
                     caps);
        }
    }
}

void
xm_moe_note_dense(struct xm_graph *g, const struct xm_caps *caps,
                  const struct xm_rule *rules)
{
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_TILE || !feeds_experts(n))
            continue;
        struct xm_node *sum = sum_behind(n);
        const char *why = sum ? xm_rewrite_near_miss(rules, g, caps, sum) : "";
        add_note(g,
                 xm_arena_printf(
                     &g->arena,
                     "every expert of '%.120s' computes every token: LowerUnfusedMoE: %s",
                     n->name,
                     *why ? why
                          : "operations other than the sum over chosen experts read the "
                            "experts"));
    }
}
