/* SPDX-License-Identifier: Apache-2.0
 *
 * moe_3gemm_fused_compressed: first the shared expert, which is a set of one expert that every
 * token chooses, then routing and the routed experts. The routed sum starts with the shared
 * expert's f32 result, which includes the addend, so that the complete sum is rounded once.
 */
#include "primitives/moe/moe.h"

#include <stdio.h>
#include <string.h>

#include "primitives/args.h"
#include "primitives/moe/experts.h"
#include "primitives/moe/router.h"
#include "primitives/stage.h"

/* Steps with a single kernel, which need no variant table. */
static const struct xm_variant shared_row = {
    "moe_shared_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_TOKENS}}};
static const struct xm_variant take_row = {
    "moe_take_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_SLOTS}}};

struct moe {
    struct xm_primitive base;
    bool by_ids;
    struct xm_primitive *router; /* routes by logits; NULL if by_ids */
    /* scales and checks given weights and ids; NULL: they are used as they are */
    struct xm_kernel *take;
    /* expert scales for `take`, referenced; NULL: none */
    struct xm_buffer *scale;
    struct xm_moe_experts routed, shared;
    bool has_shared;
    struct xm_device_weight *shared_gate_gate; /* NULL: ungated */
    struct xm_kernel *shared_route;
};

/* ---- supports ---------------------------------------------------------------------- */

static const char *
shared_refusal(const struct xm_moe_weights *routed, const struct xm_moe_weights *shared,
               const struct xm_weight *gate)
{
    const char *why = xm_moe_experts_refuse(XM_GATE_UP_APART, shared);
    if (why)
        return why;
    if (shared->gate->experts != 1 || shared->gate->cols != routed->gate->cols)
        return "the shared expert and the routed experts differ in shape or format";
    if (!gate)
        return NULL;
    if (gate->experts != 1 || gate->rows != 1 || gate->cols != routed->gate->cols)
        return "the gate of the shared expert is not [1, hidden]";
    return xm_weight_unreadable(gate);
}

const char *
xm_moe_supports(const struct xm_moe_attr *a, const struct xm_moe_weights *experts,
                const struct xm_moe_weights *shared,
                const struct xm_weight *shared_gate_gate)
{
    const int64_t top_k = a->routing.top_k;
    if (a->routing.kind >= XM_ROUTING_COUNT)
        return "unknown routing";
    if (a->activation >= XM_ACT_COUNT)
        return "unknown activation";
    const char *why = xm_moe_experts_refuse(a->gate_up, experts);
    if (why)
        return why;
    if (xm_moe_is_part(a) &&
        ((uint64_t)a->own_experts != experts->gate->experts || a->first_expert < 0 ||
         a->experts > INT32_MAX || a->first_expert > a->experts - a->own_experts))
        return "the weights do not match the sizes in the attributes of the experts";
    const uint64_t all =
        xm_moe_is_part(a) ? (uint64_t)a->experts : experts->gate->experts;
    if (top_k < 1 || (uint64_t)top_k > all || top_k > INT32_MAX)
        return "top_k is 0 or above the number of experts";
    return shared->gate ? shared_refusal(experts, shared, shared_gate_gate) : NULL;
}

static const struct xm_weight *
host(const struct xm_device_weight *w)
{
    return w ? &w->host : NULL;
}

static struct xm_moe_weights
host_weights(const struct xm_expert_rows *e)
{
    return (struct xm_moe_weights){
        .gate = host(e->gate), .up = host(e->up), .down = host(e->down)};
}

static const char *
desc_refusal(const struct xm_moe_desc *d)
{
    const struct xm_moe_weights experts = host_weights(&d->experts),
                                shared = host_weights(&d->shared);
    if ((d->src != XM_F16 && d->src != XM_F32) || (d->dst != XM_F16 && d->dst != XM_F32))
        return "activations are neither f16 nor f32";
    return xm_moe_supports(&d->attr, &experts, &shared, host(d->shared_gate_gate));
}

/* ---- creation ---------------------------------------------------------------------- */

static void
moe_destroy(struct xm_primitive *p)
{
    struct moe *m = (struct moe *)p;
    xm_primitive_destroy(m->router);
    xm_buffer_unref(m->scale);
    xm_moe_experts_fini(&m->routed);
    xm_moe_experts_fini(&m->shared);
    xm_device_weight_unref(m->shared_gate_gate);
    xm_primitive_free(p);
}

static enum xm_status
init_shared(struct moe *m, const struct xm_moe_desc *d, struct xm_error *err)
{
    const struct xm_moe_desc shared = {
        .attr = {.routing = {.top_k = 1},
                 .activation = d->attr.activation,
                 .beta = d->attr.beta},
        .experts = d->shared,
        .src = d->src,
        .dst = XM_F32,
        .add = d->add,
        .prepared = d->prepared,
        .chunk = d->chunk,
        .factor = d->factor,
    };
    m->has_shared = true;
    m->shared_gate_gate = d->shared_gate_gate;
    if (m->shared_gate_gate)
        xm_device_weight_ref(m->shared_gate_gate);
    XM_TRY(xm_moe_experts_init(&m->shared, m->base.engine, &shared, false, err));
    /* An ungated shared expert reads no gate weight: the kernel may be built for any format. */
    const struct xm_device_weight *w =
        d->shared_gate_gate ? d->shared_gate_gate : d->experts.gate;
    return xm_weight_kernel(m->base.engine, shared_row.name, xm_one_weight(&w->host),
                            &m->shared_route, err, "-DSRC=%s -DGATED=%d",
                            xm_element_text(d->src), d->shared_gate_gate != NULL);
}

static enum xm_status
init_routing(struct moe *m, const struct xm_moe_desc *d, struct xm_error *err)
{
    const struct xm_router_desc router = xm_moe_router_desc(d);
    const bool is_part = xm_moe_is_part(&d->attr);
    char own[XM_STAGE_DEFINES] = "";
    m->by_ids = d->by_ids;
    if (!d->by_ids)
        return xm_router_create(m->base.engine, &router, &m->router, err);
    if (d->ids_valid && !d->expert_scale && !is_part)
        return XM_OK;
    m->scale = d->expert_scale;
    if (m->scale)
        xm_buffer_ref(m->scale);
    xm_router_own_defines(d->attr.first_expert, d->attr.own_experts, own, sizeof(own));
    return xm_engine_kernel(m->base.engine, take_row.name, own, &m->take, err);
}

static enum xm_status
init(struct moe *m, const struct xm_moe_desc *d, struct xm_error *err)
{
    struct xm_moe_desc routed = *d;
    if (d->shared.gate)
        /* the routed sum starts with the shared expert's f32 sum */
        routed.add = XM_F32;
    XM_TRY(init_routing(m, d, err));
    XM_TRY(xm_moe_experts_init(&m->routed, m->base.engine, &routed,
                               m->router && xm_router_may_join(m->router), err));
    return d->shared.gate ? init_shared(m, d, err) : XM_OK;
}

/* ---- scratch and runs -------------------------------------------------------------- */

static enum xm_status
moe_plan(const struct xm_primitive *p, const struct xm_operand *operands,
         const struct xm_attention_run *sequences, uint64_t *scratch_bytes,
         struct xm_error *err)
{
    const struct moe *m = (const struct moe *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_MOE_HIDDEN]);
    uint64_t slots = tokens * m->routed.top_k;
    uint64_t set = xm_moe_experts_scratch(&m->routed, p, tokens);
    (void)sequences;
    if (xm_operand_rows(&operands[XM_MOE_ROUTING]) != tokens ||
        (m->by_ids && xm_operand_rows(&operands[XM_MOE_IDS]) != tokens))
        return xm_fail(err, XM_INVALID,
                       "the routing weights are not given for %llu tokens",
                       (unsigned long long)tokens);
    *scratch_bytes = 2 * xm_scratch_bytes(p, slots * 4);
    if (m->has_shared) {
        uint64_t shared = xm_moe_experts_scratch(&m->shared, p, tokens);
        *scratch_bytes += xm_scratch_bytes(p, tokens * m->routed.hidden * sizeof(float));
        /* they run one after another in the same bytes */
        set = shared > set ? shared : set;
    }
    *scratch_bytes += set;
    return XM_OK;
}

/* Runs the shared expert; its sum becomes the addend of the routed experts. */
static enum xm_status
run_shared(const struct moe *m, struct xm_moe_call *call, struct xm_buffer *weights,
           struct xm_buffer *ids)
{
    struct xm_moe_call shared = *call;
    const struct xm_counts counts = {.n = {[XM_TOKENS] = call->tokens}};
    struct xm_args a = {.n = 0};
    XM_TRY(xm_scratch_take(call->scratch, call->tokens * m->routed.hidden * sizeof(float),
                           &shared.out, call->err));
    xm_put_weight(&a, "w", m->shared_gate_gate);
    xm_put_buffer(&a, "x", call->x);
    xm_put_buffer(&a, "weights", weights);
    xm_put_buffer(&a, "ids", ids);
    xm_put_uint(&a, "k_count", m->routed.hidden);
    XM_TRY(xm_launch(&shared_row.launch, m->shared_route, &counts, &a, call->queue,
                     call->err));
    call->add = shared.out;
    return xm_moe_experts_run(&m->shared, &shared);
}

static enum xm_status
run_take(const struct moe *m, const struct xm_operand *o, uint64_t slots,
         struct xm_buffer *weights, struct xm_buffer *ids, struct xm_queue *queue,
         struct xm_error *err)
{
    const struct xm_counts counts = {.n = {[XM_SLOTS] = slots}};
    struct xm_args a = {.n = 0};
    xm_put_buffer(&a, "given", o[XM_MOE_ROUTING].buffer);
    xm_put_buffer(&a, "chosen", o[XM_MOE_IDS].buffer);
    xm_put_buffer(&a, "expert_scale", m->scale);
    xm_put_buffer(&a, "weights", weights);
    xm_put_buffer(&a, "ids", ids);
    xm_put_uint(&a, "experts", m->routed.all);
    return xm_launch(&take_row.launch, m->take, &counts, &a, queue, err);
}

static enum xm_status
run_all(const struct moe *m, const struct xm_operand *o, uint64_t tokens,
        const struct xm_run *run, struct xm_scratch *s, struct xm_error *err)
{
    struct xm_buffer *weights, *ids;
    uint64_t slots = tokens * m->routed.top_k;
    XM_TRY(xm_scratch_take(s, slots * 4, &weights, err));
    XM_TRY(xm_scratch_take(s, slots * 4, &ids, err));
    struct xm_moe_call call = {.tokens = tokens,
                               .x = o[XM_MOE_HIDDEN].buffer,
                               .prepared = o[XM_MOE_PREPARED].buffer,
                               .ids = ids,
                               .weights = weights,
                               .add = o[XM_MOE_ADDEND].buffer,
                               .out = o[XM_MOE_OUT].buffer,
                               .scratch = s,
                               .queue = run->queue,
                               .err = err};
    const struct xm_operand routing[XM_ROUTER_N_OPERANDS] = {
        [XM_ROUTER_LOGITS] = o[XM_MOE_ROUTING],
        [XM_ROUTER_WEIGHTS] = {.buffer = weights},
        [XM_ROUTER_IDS] = {.buffer = ids}};
    if (m->has_shared)
        XM_TRY(run_shared(m, &call, weights, ids));
    if (!run->experts && xm_moe_experts_route(&m->routed, tokens)) {
        call.routing = routing;
    } else if (!m->by_ids) {
        XM_TRY(xm_primitive_run(m->router, routing, run, err));
    } else if (m->take) {
        XM_TRY(run_take(m, o, slots, weights, ids, run->queue, err));
    } else {
        call.weights = o[XM_MOE_ROUTING].buffer;
        call.ids = o[XM_MOE_IDS].buffer;
    }
    call.cache = run->experts;
    return xm_moe_experts_run(&m->routed, &call);
}

static enum xm_status
moe_run(const struct xm_primitive *p, const struct xm_operand *operands,
        const struct xm_run *run, struct xm_error *err)
{
    const struct moe *m = (const struct moe *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_MOE_HIDDEN]);
    if (tokens == 0)
        return XM_OK;
    if (tokens > INT32_MAX / m->routed.top_k)
        return xm_fail(err, XM_UNSUPPORTED, "%llu tokens in one run are too many",
                       (unsigned long long)tokens);
    struct xm_scratch s;
    xm_scratch_begin(&s, p, run);
    enum xm_status status = run_all(m, operands, tokens, run, &s, err);
    xm_scratch_end(&s);
    return status;
}

static void
moe_describe(const struct xm_primitive *p, const struct xm_operand *operands, char *out,
             size_t out_bytes)
{
    const struct moe *m = (const struct moe *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_MOE_HIDDEN]);
    if (m->by_ids)
        snprintf(out, out_bytes, "%s", m->take ? take_row.name : "");
    else if (xm_moe_experts_route(&m->routed, tokens))
        snprintf(out, out_bytes, "%s", "");
    else
        xm_primitive_describe(m->router, NULL, out, out_bytes);
    xm_moe_experts_describe(&m->routed, tokens, out, out_bytes);
    if (m->has_shared) {
        size_t used = strlen(out);
        snprintf(out + used, out_bytes - used, " %s", shared_row.name);
        xm_moe_experts_describe(&m->shared, tokens, out, out_bytes);
    }
}

static const uint8_t moe_roles[] = {[XM_MOE_HIDDEN] = XM_ROLE_IN,
                                    [XM_MOE_ROUTING] = XM_ROLE_IN,
                                    [XM_MOE_IDS] = XM_ROLE_IN,
                                    [XM_MOE_ADDEND] = XM_ROLE_IN,
                                    [XM_MOE_PREPARED] = XM_ROLE_IN | XM_ROLE_FORM,
                                    [XM_MOE_OUT] = XM_ROLE_OUT};
static const struct xm_primitive_ops moe_ops = {
    "moe", moe_plan, moe_run, moe_describe, moe_destroy, XM_ROLES(moe_roles)};

enum xm_status
xm_moe_create(struct xm_engine *engine, const struct xm_moe_desc *desc,
              struct xm_primitive **out, struct xm_error *err)
{
    const char *why = desc_refusal(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "moe: %s", why);
    struct moe *m = xm_primitive_new(sizeof(*m), &moe_ops, engine, err);
    if (!m)
        return XM_NO_MEMORY;
    enum xm_status status = init(m, desc, err);
    if (status != XM_OK) {
        moe_destroy(&m->base);
        return status;
    }
    *out = &m->base;
    return XM_OK;
}

enum xm_status
xm_moe_cache_create(const struct xm_primitive *moe, uint64_t bytes,
                    struct xm_queue *queue, struct xm_expert_cache **out,
                    struct xm_error *err)
{
    const struct xm_moe_experts *routed = &((const struct moe *)moe)->routed;
    return xm_expert_cache_create(moe->engine, &routed->desc.experts, routed->top_k,
                                  xm_moe_experts_few(routed), bytes, queue, out, err);
}
