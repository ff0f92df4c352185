/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering of mixtures of experts: the fused expert layer, the router, and gather-matmul (products
 * with the weights of the experts that ids choose).
 */
#include "plugin/lower/lower.h"

#include "primitives/moe/moe.h"

static enum xm_status
lower_router(struct xm_lower *l, struct xm_node *n)
{
    struct xm_router_desc desc = {.routing = n->attr.router};
    struct xm_step_operand operands[XM_ROUTER_N_OPERANDS];
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 1), &desc.bias));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 2), &desc.expert_scale));
    XM_TRY(xm_lower_input_as(l, n, 0, XM_F32, &operands[XM_ROUTER_LOGITS]));
    XM_TRY(xm_lower_result(l, n, 0, XM_F32, &operands[XM_ROUTER_WEIGHTS]));
    XM_TRY(xm_lower_result(l, n, 1, XM_I32, &operands[XM_ROUTER_IDS]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_router_create(l->p->engine, &desc, &primitive, l->err));
    return xm_lower_finish(l, n, primitive, operands, NULL);
}

static enum xm_status
lower_gather_matmul(struct xm_lower *l, struct xm_node *n)
{
    struct xm_gather_matmul_desc desc = {0};
    struct xm_step_operand operands[XM_GATHER_MATMUL_N_OPERANDS];
    XM_TRY(xm_lower_weight(l, xm_in(n, 1), &desc.weight));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 3), &desc.bias));
    if (xm_gather_matmul_supports(xm_engine_info(l->p->engine), &desc.weight->host))
        return XM_UNSUPPORTED;
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_GATHER_MATMUL_A]));
    XM_TRY(xm_lower_input(l, n, 2, &operands[XM_GATHER_MATMUL_IDS]));
    desc.src = xm_lower_element_of(l, &operands[XM_GATHER_MATMUL_A]);
    desc.ids = xm_lower_element_of(l, &operands[XM_GATHER_MATMUL_IDS]);
    desc.dst = xm_lower_element(&n->out[0]);
    XM_TRY(xm_lower_result(l, n, 0, desc.dst, &operands[XM_GATHER_MATMUL_OUT]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_gather_matmul_create(l->p->engine, &desc, &primitive, l->err));
    struct xm_step_cost cost = {.result = XM_GATHER_MATMUL_OUT};
    xm_lower_add_cost(&cost, &desc.weight->host, 1, desc.weight->host.experts);
    return xm_lower_finish(l, n, primitive, operands, &cost);
}

static enum xm_status
moe_weights(struct xm_lower *l, const struct xm_node *n, struct xm_moe_desc *d,
            uint64_t *host_experts)
{
    const struct xm_value *const experts[] = {
        xm_in(n, XM_MOE_W_GATE), xm_in(n, XM_MOE_W_UP), xm_in(n, XM_MOE_W_DOWN)};
    struct xm_device_weight *w[XM_ARRAY_LEN(experts)];
    XM_TRY(xm_lower_experts(l, experts, XM_ARRAY_LEN(experts), w, host_experts));
    d->experts.gate = w[0];
    d->experts.up = w[1];
    d->experts.down = w[2];
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_BIAS_GATE), &d->experts.bias_gate));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_BIAS_UP), &d->experts.bias_up));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_BIAS_DOWN), &d->experts.bias_down));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_FACTOR), &d->experts.factor));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_ROUTER_BIAS), &d->router_bias));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_EXPERT_SCALE), &d->expert_scale));
    XM_TRY(xm_lower_weight(l, xm_in(n, XM_MOE_SHARED_GATE), &d->shared.gate));
    XM_TRY(xm_lower_weight(l, xm_in(n, XM_MOE_SHARED_UP), &d->shared.up));
    XM_TRY(xm_lower_weight(l, xm_in(n, XM_MOE_SHARED_DOWN), &d->shared.down));
    return xm_lower_weight(l, xm_in(n, XM_MOE_SHARED_GATE_GATE), &d->shared_gate_gate);
}

static struct xm_step_cost
moe_cost(const struct xm_moe_desc *d)
{
    const struct xm_device_weight *routed[] = {d->experts.gate, d->experts.up,
                                               d->experts.down};
    const struct xm_device_weight *shared[] = {d->shared.gate, d->shared.up,
                                               d->shared.down};
    struct xm_step_cost cost = {.result = XM_MOE_OUT};
    for (size_t i = 0; i < XM_ARRAY_LEN(routed); i++) {
        if (routed[i])
            xm_lower_add_cost(&cost, &routed[i]->host, (uint64_t)d->attr.routing.top_k,
                              (uint64_t)d->attr.experts);
        if (shared[i])
            xm_lower_add_cost(&cost, &shared[i]->host, 1, 1);
    }
    return cost;
}

/* Returns whether ids are certainly below `experts`, because they are the indices of a top-k or
 * router over at most `experts` scores. */
static bool
are_experts(const struct xm_value *ids, int64_t experts)
{
    while ((ids->node->op == XM_OP_CONVERT &&
            (ids->type.element == XM_I32 || ids->type.element == XM_I64)) ||
           ids->node->op == XM_OP_RESHAPE)
        ids = xm_in(ids->node, 0);
    const struct xm_node *n = ids->node;
    if (ids->index != 1 || (n->op != XM_OP_TOPK && n->op != XM_OP_MOE_ROUTER))
        return false;
    const struct xm_shape *scores = &xm_in(n, 0)->type.shape;
    int64_t axis = n->op == XM_OP_TOPK ? n->attr.topk.axis : -1;
    axis += axis < 0 ? (int64_t)scores->rank : 0;
    return axis >= 0 && axis < (int64_t)scores->rank &&
           xm_dim_is_const(scores->dim[axis]) && scores->dim[axis].n <= experts;
}

static enum xm_status
lower_moe(struct xm_lower *l, struct xm_node *n)
{
    struct xm_moe_desc desc = {.attr = n->attr.moe,
                               .chunk = l->p->config.ubatch,
                               .factor = xm_lower_factor_columns(l, n)};
    struct xm_step_operand operands[XM_MOE_N_OPERANDS];
    xm_lower_absent(operands, XM_MOE_N_OPERANDS);
    uint64_t host_experts = 0;
    XM_TRY(moe_weights(l, n, &desc, &host_experts));
    XM_TRY(xm_lower_input(l, n, XM_MOE_HIDDEN, &operands[XM_MOE_HIDDEN]));
    XM_TRY(xm_lower_input_as(l, n, XM_MOE_ROUTING, XM_F32, &operands[XM_MOE_ROUTING]));
    desc.by_ids = !xm_is_none(xm_in(n, XM_MOE_IDS));
    desc.ids_valid = are_experts(xm_in(n, XM_MOE_IDS), n->attr.moe.experts);
    XM_TRY(xm_lower_input_as(l, n, XM_MOE_IDS, XM_I32, &operands[XM_MOE_IDS]));
    desc.src = xm_lower_element_of(l, &operands[XM_MOE_HIDDEN]);
    desc.dst = desc.add = xm_lower_element(&n->out[0]);
    XM_TRY(xm_lower_input_as(l, n, XM_MOE_ADDEND, desc.dst, &operands[XM_MOE_ADDEND]));
    XM_TRY(xm_lower_result(l, n, 0, desc.dst, &operands[XM_MOE_OUT]));
    operands[XM_MOE_PREPARED].value = xm_lower_prepared_of(
        l, operands[XM_MOE_HIDDEN].value, desc.experts.gate->host.cols, &desc.prepared);
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_moe_create(l->p->engine, &desc, &primitive, l->err));
    const struct xm_step_cost cost = moe_cost(&desc);
    XM_TRY(xm_lower_finish(l, n, primitive, operands, &cost));
    l->p->steps[l->p->n_steps - 1].host_experts = host_experts;
    return XM_OK;
}

/* NULL also for a matrix that is no stored weight: then lowering falls back to the host. */
static const char *
why_not_gather_matmul(const struct xm_lower_question *q)
{
    const struct xm_weight *w = xm_asked_weight(q->in[1]);
    return w ? xm_gather_matmul_supports(q->device, w) : NULL;
}

static const char *
why_not_router(const struct xm_lower_question *q)
{
    return xm_router_supports(&q->attr->router, xm_asked_last_size(q->in[0]));
}

static const char *
why_not_moe(const struct xm_lower_question *q)
{
    const struct xm_moe_attr *a = &q->attr->moe;
    struct xm_value *const *in = q->in;
    const struct xm_moe_weights experts = {.gate = xm_asked_weight(in[XM_MOE_W_GATE]),
                                           .up = xm_asked_weight(in[XM_MOE_W_UP]),
                                           .down = xm_asked_weight(in[XM_MOE_W_DOWN])};
    const struct xm_moe_weights shared = {.gate = xm_asked_weight(in[XM_MOE_SHARED_GATE]),
                                          .up = xm_asked_weight(in[XM_MOE_SHARED_UP]),
                                          .down =
                                              xm_asked_weight(in[XM_MOE_SHARED_DOWN])};
    if (!experts.gate || !experts.down)
        return "the expert weights are not constants";
    return xm_moe_supports(a, &experts, &shared,
                           xm_asked_weight(in[XM_MOE_SHARED_GATE_GATE]));
}

/* MOE_COMPRESSED without a shared expert can always run, because a pass can replace it by other
 * operations. These have no shared expert: with one, the layer needs the fused kernels. */
static const char *
why_not_moe_compressed(const struct xm_lower_question *q)
{
    return q->attr->moe.shared ? why_not_moe(q) : NULL;
}

/* clang-format off */
const struct xm_lower_op xm_lower_expert_ops[] = {
    { XM_OP_MOE_ROUTER,                 lower_router,        why_not_router },
    { XM_OP_GATHER_MATMUL,              lower_gather_matmul, why_not_gather_matmul },
    { XM_OP_MOE_3GEMM_FUSED_COMPRESSED, lower_moe,           why_not_moe },
    { XM_OP_MOE_COMPRESSED,             NULL,                why_not_moe_compressed },
    { XM_OP_NONE, NULL, NULL }
};
/* clang-format on */
