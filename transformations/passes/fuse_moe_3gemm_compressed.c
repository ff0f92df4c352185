/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing and compressed experts in one op.
 *
 *     moe_compressed(x, r.weights, r.ids, ..), r = router(logits, bias, scale)
 *         ->   moe_3gemm_fused_compressed(x, logits, _, bias, scale, ..)
 *     moe_compressed(x, weights, ids, ..)
 *         ->   moe_3gemm_fused_compressed(x, weights, ids, ..)
 *
 * Done only if the device can run the fused op; else router and experts stay separate. Logits, or
 * weights and ids, may be computed by any ops: how routing is written affects the number of
 * launches, but not the kernels of the experts. Attributes that describe the experts are kept.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/pipeline.h"

enum { MOE, WEIGHTS, IDS, LOGITS, BIAS, SCALE };

/* Whether weights and ids are results of one router and have no other readers, so that the fused op
 * can replace the router. */
static bool
is_one_router(struct xm_match *m)
{
    const struct xm_value *weights = m->slot[WEIGHTS], *ids = m->slot[IDS];
    m->why = "other operations read the routing, or its weights and ids come from "
             "different routers";
    return weights->node == ids->node && weights->n_uses == 1 && ids->n_uses == 1 &&
           weights->node->attr.router.top_k == m->root->attr.moe.routing.top_k;
}

static void
set_routing(const struct xm_match *m, union xm_attr *attr)
{
    attr->moe.routing = m->slot[WEIGHTS]->node->attr.router;
}

/* clang-format off */
#define ROUTER VAR(LOGITS), MAYBE(BIAS), MAYBE(SCALE)
const struct xm_rule xm_rules_fuse_moe_3gemm_compressed[] = {
    { "router and experts",
      N(MOE, MOE_COMPRESSED, AT(XM_MOE_ROUTING, PO(WEIGHTS, 0, MOE_ROUTER, ROUTER)),
                             AT(XM_MOE_IDS,     PO(IDS,     1, MOE_ROUTER, ROUTER))),
      N(MOE, MOE_3GEMM_FUSED_COMPRESSED, AT(XM_MOE_ROUTING, VAR(LOGITS)),
        AT(XM_MOE_IDS, ABSENT), AT(XM_MOE_ROUTER_BIAS, VAR(BIAS)), AT(XM_MOE_EXPERT_SCALE, VAR(SCALE))),
      .attr = set_routing, .condition = is_one_router },
    { "weights, ids and experts",
      ANY(MOE, 0, MOE_COMPRESSED), ANY(MOE, 0, MOE_3GEMM_FUSED_COMPRESSED), .condition = NULL },
    { .name = NULL },
};
/* clang-format on */
