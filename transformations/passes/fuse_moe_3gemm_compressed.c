/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing and compressed experts in one op.
 *
 *     moe_compressed(x, r.weights, r.ids, ..), r = router(logits, bias, scale)
 *         ->   moe_3gemm_fused_compressed(x, logits, _, bias, scale, ..)
 *     moe_compressed(x, weights, ids, ..)
 *         ->   moe_3gemm_fused_compressed(x, weights, ids, ..)
 *
 * Only where it can be run; else router and experts stay as they are. Logits, or weights and ids,
 * may be computed by anything: how routing is spelled decides about launches, never about the
 * kernels of the experts. Attributes of the experts say what they do.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum { MOE };

/* Weights and ids are all that is read of one router, which the fused op can be itself. */
static bool
is_routed(const struct xm_node *moe)
{
    const struct xm_value *weights = xm_in(moe, XM_MOE_ROUTING);
    const struct xm_node *router = weights->node;
    return router->op == XM_OP_MOE_ROUTER && weights->index == 0 &&
           xm_in(moe, XM_MOE_IDS) == &router->out[1] && router->out[0].n_uses == 1 &&
           router->out[1].n_uses == 1 &&
           router->attr.router.top_k == moe->attr.moe.routing.top_k;
}

static void
fused_operands(const struct xm_match *m, struct xm_value *in[XM_MOE_N_IN],
               union xm_attr *attr)
{
    const struct xm_node *moe = m->root, *router = xm_in(moe, XM_MOE_ROUTING)->node;
    for (uint32_t i = 0; i < XM_MOE_N_IN; i++)
        in[i] = xm_in(moe, i);
    *attr = moe->attr;
    if (!is_routed(moe))
        return;
    in[XM_MOE_ROUTING] = xm_in(router, 0);
    in[XM_MOE_ROUTER_BIAS] = xm_in(router, 1);
    in[XM_MOE_EXPERT_SCALE] = xm_in(router, 2);
    in[XM_MOE_IDS] = xm_none(m->graph);
    attr->moe.routing = router->attr.router;
}

static bool
is_fusable(struct xm_match *m)
{
    struct xm_value *in[XM_MOE_N_IN];
    union xm_attr attr;
    fused_operands(m, in, &attr);
    return xm_can_run(m->caps, XM_OP_MOE_3GEMM_FUSED_COMPRESSED, &attr, in, XM_MOE_N_IN,
                      &m->why);
}

static struct xm_value *
fuse(struct xm_builder *b, struct xm_match *m)
{
    struct xm_value *in[XM_MOE_N_IN];
    union xm_attr attr;
    fused_operands(m, in, &attr);
    return xm_op_build(b, XM_OP_MOE_3GEMM_FUSED_COMPRESSED, &attr, in, XM_MOE_N_IN);
}

static const struct xm_rule rules[] = {
    {"routing and experts", ANY(MOE, 0, MOE_COMPRESSED), .apply = fuse,
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
