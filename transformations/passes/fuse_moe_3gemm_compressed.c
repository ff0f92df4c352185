/* SPDX-License-Identifier: Apache-2.0
 *
 * Router and compressed experts in one op.
 *
 *     moe_compressed(x, r.weights, r.ids, ..), r = router(logits, bias, scale)
 *         ->   moe_3gemm_fused_compressed(x, logits, bias, scale, ..)
 *
 * Only where it can be run; else router and experts stay as they are. The logits may be
 * computed by anything; attributes of the experts say what they do.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum { MOE };

static void
fused_operands(struct xm_graph *g, const struct xm_node *moe,
               struct xm_value *in[XM_MOE_N_IN], union xm_attr *attr)
{
    const struct xm_node *router = xm_in(moe, XM_MOE_ROUTING)->node;
    for (uint32_t i = 0; i < XM_MOE_N_IN; i++)
        in[i] = xm_in(moe, i);
    in[XM_MOE_ROUTING] = xm_in(router, 0);
    in[XM_MOE_ROUTER_BIAS] = xm_in(router, 1);
    in[XM_MOE_EXPERT_SCALE] = xm_in(router, 2);
    in[XM_MOE_IDS] = xm_none(g);
    *attr = moe->attr;
    attr->moe.routing = router->attr.router;
}

static bool
is_fusable(struct xm_match *m)
{
    struct xm_value *in[XM_MOE_N_IN];
    const struct xm_node *moe = m->root;
    const struct xm_value *weights = xm_in(moe, XM_MOE_ROUTING);
    const struct xm_node *router = weights->node;
    union xm_attr attr;
    m->why = "its routing weights and ids do not come from one router";
    if (router->op != XM_OP_MOE_ROUTER || weights->index != 0 ||
        xm_in(moe, XM_MOE_IDS) != &router->out[1] ||
        router->attr.router.top_k != moe->attr.moe.routing.top_k)
        return false;
    m->why = "others read the routing";
    if (router->out[0].n_uses != 1 || router->out[1].n_uses != 1)
        return false;
    fused_operands(m->graph, moe, in, &attr);
    return xm_can_run(m->caps, XM_OP_MOE_3GEMM_FUSED_COMPRESSED, &attr, in, XM_MOE_N_IN,
                      &m->why);
}

static struct xm_value *
fuse(struct xm_builder *b, struct xm_match *m)
{
    struct xm_value *in[XM_MOE_N_IN];
    union xm_attr attr;
    fused_operands(b->graph, m->root, in, &attr);
    return xm_op_build(b, XM_OP_MOE_3GEMM_FUSED_COMPRESSED, &attr, in, XM_MOE_N_IN);
}

static const struct xm_rule rules[] = {
    {"router and experts", ANY(MOE, 0, MOE_COMPRESSED), .apply = fuse,
     .condition = is_fusable},
};

const char *
xm_moe_not_fused(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *moe)
{
    return xm_rewrite_near_miss(rules, XM_ARRAY_LEN(rules), g, caps, moe);
}

bool
xm_pass_fuse_moe_3gemm_compressed(struct xm_graph *g, const struct xm_caps *caps)
{
    return xm_rewrite(g, caps, rules, XM_ARRAY_LEN(rules));
}
