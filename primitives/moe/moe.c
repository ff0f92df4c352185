/* SPDX-License-Identifier: Apache-2.0
 *
 * moe_3gemm_fused_compressed: route, then the routed experts; before them the shared
 * expert, which is a set of one expert that every token chooses. Its f32 result (to which
 * the addend was added) is what the routed sum starts with, so that everything is added up
 * before it is rounded once.
 */
#include "primitives/moe/moe.h"

#include <stdio.h>
#include <string.h>

#include "primitives/args.h"
#include "primitives/moe/experts.h"
#include "primitives/moe/router.h"
#include "runtime/util/memory.h"

struct moe {
    struct xm_primitive base;
    struct xm_router_steps router;
    struct xm_moe_experts routed, shared;
    bool has_shared;
    struct xm_device_weight *shared_gate_gate; /* NULL: ungated */
    struct xm_kernel *shared_route;
};

/* ---- supports ---------------------------------------------------------------------- */

static const char *
shared_refusal(const struct xm_moe_shape *s)
{
    const struct xm_weight *gate = s->shared_gate_gate;
    const char *why = xm_moe_experts_refuse(XM_GATE_UP_APART, s->shared_gate,
                                            s->shared_up, s->shared_down);
    if (why)
        return why;
    if (s->shared_gate->experts != 1 || s->shared_gate->cols != s->gate->cols)
        return "the shared expert does not fit the routed ones";
    if (!gate)
        return NULL;
    if (gate->experts != 1 || gate->rows != 1 || gate->cols != s->gate->cols)
        return "the gate of the shared expert is not [1, hidden]";
    return xm_weight_unreadable(gate);
}

const char *
xm_moe_supports(const struct xm_device_info *device, const struct xm_moe_shape *shape)
{
    (void)device; /* the reference kernels run anywhere */
    if (shape->routing.kind >= XM_ROUTING_COUNT)
        return "unknown routing";
    if (shape->activation >= XM_ACT_COUNT)
        return "unknown activation";
    if (shape->expert >= XM_EXPERT_COUNT)
        return "unknown form of expert";
    if (shape->has_bias_gate && shape->gate_up == XM_GATE_UP_APART)
        return "biases of gate and up are supported where they share a weight";
    const char *why =
        xm_moe_experts_refuse(shape->gate_up, shape->gate, shape->up, shape->down);
    if (why)
        return why;
    if (shape->routing.top_k == 0 || shape->routing.top_k > shape->gate->experts)
        return "top_k is 0 or above the number of experts";
    return shape->shared_gate ? shared_refusal(shape) : NULL;
}

static const struct xm_weight *
host(const struct xm_device_weight *w)
{
    return w ? &w->host : NULL;
}

static const char *
desc_refusal(const struct xm_device_info *device, const struct xm_moe_desc *d)
{
    const struct xm_moe_shape shape = {
        .routing = d->routing,
        .expert = d->expert,
        .gate_up = d->gate_up,
        .activation = d->activation,
        .gate = host(d->gate),
        .up = host(d->up),
        .down = host(d->down),
        .shared_gate = host(d->shared_gate),
        .shared_up = host(d->shared_up),
        .shared_down = host(d->shared_down),
        .shared_gate_gate = host(d->shared_gate_gate),
        .has_bias_gate = d->bias_gate != NULL,
    };
    if ((d->src != XM_F16 && d->src != XM_F32) || (d->dst != XM_F16 && d->dst != XM_F32))
        return "activations are neither f16 nor f32";
    return xm_moe_supports(device, &shape);
}

/* ---- creation ---------------------------------------------------------------------- */

static void
moe_destroy(struct xm_primitive *p)
{
    struct moe *m = (struct moe *)p;
    xm_router_steps_fini(&m->router);
    xm_moe_experts_fini(&m->routed);
    xm_moe_experts_fini(&m->shared);
    xm_device_weight_unref(m->shared_gate_gate);
    xm_engine_unref(p->engine);
    xm_free(p);
}

static enum xm_status
init_shared(struct moe *m, const struct xm_moe_desc *d, struct xm_error *err)
{
    const struct xm_moe_experts_desc shared = {
        .expert = XM_EXPERT_GEMM3_SWIGLU,
        .activation = d->activation,
        .beta = d->beta,
        .limit = d->limit,
        .top_k = 1,
        .gate = d->shared_gate,
        .up = d->shared_up,
        .down = d->shared_down,
        .src = d->src,
        .dst = XM_F32,
        .add = d->dst,
        .chunk = d->chunk,
    };
    m->has_shared = true;
    m->shared_gate_gate = d->shared_gate_gate;
    if (m->shared_gate_gate)
        xm_device_weight_ref(m->shared_gate_gate);
    XM_TRY(xm_moe_experts_init(&m->shared, m->base.engine, &shared, err));
    /* An ungated one reads no weight: any format will do. */
    const struct xm_device_weight *w =
        d->shared_gate_gate ? d->shared_gate_gate : d->gate;
    return xm_weight_kernel(m->base.engine, "moe_shared_ref", &w->host, &m->shared_route,
                            err, "-DSRC=%s -DGATED=%d", xm_element_text(d->src),
                            d->shared_gate_gate != NULL);
}

static enum xm_status
init(struct moe *m, const struct xm_moe_desc *d, struct xm_error *err)
{
    const struct xm_router_desc router = {d->routing, d->router_bias, d->expert_scale};
    const struct xm_moe_experts_desc routed = {
        .expert = d->expert,
        .gate_up = d->gate_up,
        .activation = d->activation,
        .beta = d->beta,
        .limit = d->limit,
        .top_k = d->routing.top_k,
        .gate = d->gate,
        .up = d->up,
        .down = d->down,
        .bias_gate = d->bias_gate,
        .bias_down = d->bias_down,
        .src = d->src,
        .dst = d->dst,
        .add = d->shared_gate ? XM_F32 : d->dst,
        .chunk = d->chunk,
    };
    XM_TRY(xm_router_steps_init(&m->router, m->base.engine, &router, err));
    XM_TRY(xm_moe_experts_init(&m->routed, m->base.engine, &routed, err));
    return d->shared_gate ? init_shared(m, d, err) : XM_OK;
}

/* ---- scratch and runs -------------------------------------------------------------- */

static enum xm_status
moe_plan(const struct xm_primitive *p, const struct xm_operand *operands,
         uint64_t *scratch_bytes, struct xm_error *err)
{
    const struct moe *m = (const struct moe *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_MOE_OP_HIDDEN]);
    uint64_t slots = tokens * m->router.routing.top_k;
    uint64_t set = xm_moe_experts_scratch(&m->routed, p, tokens);
    (void)err;
    *scratch_bytes = 2 * xm_scratch_bytes(p, slots * 4);
    if (m->has_shared) {
        uint64_t shared = xm_moe_experts_scratch(&m->shared, p, tokens);
        *scratch_bytes += xm_scratch_bytes(p, tokens * m->routed.hidden * sizeof(float));
        set = shared > set ? shared : set; /* one after the other in the same bytes */
    }
    *scratch_bytes += set;
    return XM_OK;
}

static enum xm_status
run_shared(const struct moe *m, struct xm_moe_batch *batch, struct xm_buffer *weights,
           struct xm_buffer *ids, struct xm_scratch *s, struct xm_queue *queue,
           struct xm_error *err)
{
    struct xm_buffer *sum;
    XM_TRY(
        xm_scratch_take(s, batch->tokens * m->routed.hidden * sizeof(float), &sum, err));
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, m->shared_gate_gate);
    xm_args_buffer(&a, batch->x);
    xm_args_buffer(&a, weights);
    xm_args_buffer(&a, ids);
    xm_args_uint(&a, m->routed.hidden);
    XM_TRY(xm_args_run(&a, queue, m->shared_route, false, batch->tokens, 1, 1, err));
    struct xm_moe_batch shared = *batch;
    shared.out = sum;
    batch->add = sum;
    return xm_moe_experts_run(&m->shared, &shared, s, queue, err);
}

static enum xm_status
run_all(const struct moe *m, const struct xm_operand *o, uint64_t tokens,
        const struct xm_run *run, struct xm_scratch *s, struct xm_error *err)
{
    struct xm_buffer *weights, *ids;
    uint64_t slots = tokens * m->router.routing.top_k;
    XM_TRY(xm_scratch_take(s, slots * 4, &weights, err));
    XM_TRY(xm_scratch_take(s, slots * 4, &ids, err));
    struct xm_moe_batch batch = {.tokens = tokens,
                                 .x = o[XM_MOE_OP_HIDDEN].buffer,
                                 .ids = ids,
                                 .weights = weights,
                                 .add = o[XM_MOE_OP_ADDEND].buffer,
                                 .out = o[XM_MOE_OP_OUT].buffer};
    if (m->has_shared)
        XM_TRY(run_shared(m, &batch, weights, ids, s, run->queue, err));
    XM_TRY(xm_router_steps_run(&m->router, o[XM_MOE_OP_LOGITS].buffer, weights, ids,
                               tokens, m->routed.experts, run->queue, err));
    batch.cache = run->experts;
    return xm_moe_experts_run(&m->routed, &batch, s, run->queue, err);
}

static enum xm_status
moe_run(const struct xm_primitive *p, const struct xm_operand *operands,
        const struct xm_run *run, struct xm_error *err)
{
    const struct moe *m = (const struct moe *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_MOE_OP_HIDDEN]);
    if (tokens == 0)
        return XM_OK;
    if (tokens > INT32_MAX / m->router.routing.top_k)
        return xm_fail(err, XM_UNSUPPORTED, "%llu tokens at once are too many",
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
    uint64_t tokens = xm_operand_rows(&operands[XM_MOE_OP_HIDDEN]);
    snprintf(out, out_bytes, "%s", xm_router_steps_name(&m->router));
    xm_moe_experts_describe(&m->routed, tokens, out, out_bytes);
    if (m->has_shared) {
        size_t used = strlen(out);
        snprintf(out + used, out_bytes - used, " moe_shared_ref");
        xm_moe_experts_describe(&m->shared, tokens, out, out_bytes);
    }
}

static const struct xm_primitive_ops moe_ops = {"moe", moe_plan, moe_run, moe_describe,
                                                moe_destroy};

enum xm_status
xm_moe_create(struct xm_engine *engine, const struct xm_moe_desc *desc,
              struct xm_primitive **out, struct xm_error *err)
{
    const char *why = desc_refusal(xm_engine_info(engine), desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "moe: %s", why);
    struct moe *m = xm_calloc(1, sizeof(*m));
    if (!m)
        return xm_fail(err, XM_NO_MEMORY, "no memory for a moe primitive");
    m->base.ops = &moe_ops;
    m->base.engine = engine;
    xm_engine_ref(engine);
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
    const struct xm_expert_rows rows = xm_moe_experts_rows(routed);
    return xm_expert_cache_create(moe->engine, &rows, routed->desc.top_k,
                                  xm_moe_experts_few(routed), bytes, queue, out, err);
}
