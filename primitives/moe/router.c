/* SPDX-License-Identifier: Apache-2.0
 *
 * moe_router: logits -> the chosen experts and their weights.
 */
#include "primitives/moe/router.h"

#include <stdio.h>

#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"

/* Slot s of moe_route_sg is lane s of a sub-group. */
static const char *
more_than_lanes(const void *problem)
{
    return ((const struct xm_moe_routing *)problem)->top_k > XM_SUB_GROUP
               ? "top_k is above the lanes of a sub-group"
               : NULL;
}

/* clang-format off */
static const struct xm_variant rows[] = {
    {"moe_route_sg",  XM_FAMILY_SG,  0, more_than_lanes, {XM_LANES}},
    {"moe_route_gen", XM_FAMILY_GEN, 0, NULL,            {XM_GROUP, XM_GROUP_ITEMS}},
    {"moe_route_ref", XM_FAMILY_ANY, 0, NULL,            {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_moe_route_table = {"moe_route", rows,
                                                    XM_ARRAY_LEN(rows)};

struct building {
    struct xm_router_steps *steps;
    struct xm_engine *engine;
};

static enum xm_status
build(void *ctx, size_t i, struct xm_error *err)
{
    struct building *b = ctx;
    char defines[XM_KERNEL_DEFINES];
    (void)i;
    xm_defines_print(defines, sizeof(defines), "-DROUTING=%d -DNORMALISE=%d",
                     (int)b->steps->routing.kind, b->steps->routing.normalise);
    return xm_engine_kernel(b->engine, rows[b->steps->pick.row].name, defines,
                            &b->steps->kernel, err);
}

const char *
xm_router_supports(const struct xm_moe_routing *routing, uint64_t experts)
{
    if (routing->kind >= XM_ROUTING_COUNT)
        return "unknown routing";
    return routing->top_k < 1 || (uint64_t)routing->top_k > experts ||
                   routing->top_k > INT32_MAX
               ? "top_k is 0 or above the number of experts"
               : NULL;
}

enum xm_status
xm_router_steps_init(struct xm_router_steps *r, struct xm_engine *engine,
                     const struct xm_router_desc *desc, struct xm_error *err)
{
    const struct xm_moe_routing *routing = &desc->routing;
    const char *why = xm_router_supports(routing, INT32_MAX); /* experts: a run's */
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "moe_router: %s", why);
    r->routing = *routing;
    r->bias = desc->bias;
    r->expert_scale = desc->expert_scale;
    if (r->bias)
        xm_buffer_ref(r->bias);
    if (r->expert_scale)
        xm_buffer_ref(r->expert_scale);
    r->pick = (struct xm_pick){.table = &xm_moe_route_table, .problem = &r->routing};
    struct building building = {r, engine};
    return xm_variant_build(&r->pick, 1, engine, build, &building, err);
}

void
xm_router_steps_fini(struct xm_router_steps *r)
{
    xm_buffer_unref(r->bias);
    xm_buffer_unref(r->expert_scale);
}

const char *
xm_router_steps_name(const struct xm_router_steps *r)
{
    return rows[r->pick.row].name;
}

enum xm_status
xm_router_steps_run(const struct xm_router_steps *r, const struct xm_buffer *logits,
                    struct xm_buffer *weights, struct xm_buffer *ids, uint64_t tokens,
                    uint64_t experts, struct xm_queue *queue, struct xm_error *err)
{
    const uint64_t top_k = (uint64_t)r->routing.top_k;
    if (top_k > experts)
        return xm_fail(err, XM_INVALID, "top_k is %llu, but there are %llu experts",
                       (unsigned long long)top_k, (unsigned long long)experts);
    const struct xm_counts counts = {.n = {[XM_UNITS] = tokens}};
    struct xm_args a = {.n = 0};
    xm_put_buffer(&a, "logits", logits);
    xm_put_buffer(&a, "bias", r->bias);
    xm_put_buffer(&a, "expert_scale", r->expert_scale);
    xm_put_buffer(&a, "weights", weights);
    xm_put_buffer(&a, "ids", ids);
    xm_put_uint(&a, "experts", experts);
    xm_put_uint(&a, "top_k", top_k);
    xm_put_float(&a, "epsilon", r->routing.epsilon);
    xm_put_float(&a, "least", r->routing.least_sum);
    xm_put_float(&a, "factor", r->routing.scale);
    xm_put_uint(&a, "tokens", tokens);
    return xm_launch(&rows[r->pick.row].launch, r->kernel, &counts, &a, queue, err);
}

/* ---- as a primitive of its own ----------------------------------------------------- */

struct router {
    struct xm_primitive base;
    struct xm_router_steps steps;
};

static enum xm_status
router_run(const struct xm_primitive *p, const struct xm_operand *o,
           const struct xm_run *run, struct xm_error *err)
{
    const struct router *r = (const struct router *)p;
    const struct xm_operand *logits = &o[XM_ROUTER_LOGITS];
    uint64_t tokens = xm_operand_rows(logits);
    return xm_router_steps_run(&r->steps, logits->buffer, o[XM_ROUTER_WEIGHTS].buffer,
                               o[XM_ROUTER_IDS].buffer, tokens,
                               (uint64_t)logits->dim[logits->rank - 1], run->queue, err);
}

static void
router_describe(const struct xm_primitive *p, const struct xm_operand *o, char *out,
                size_t out_bytes)
{
    (void)o;
    snprintf(out, out_bytes, "%s",
             xm_router_steps_name(&((const struct router *)p)->steps));
}

static void
router_destroy(struct xm_primitive *p)
{
    xm_router_steps_fini(&((struct router *)p)->steps);
    xm_primitive_free(p);
}

static const struct xm_primitive_ops router_ops = {"moe_router", NULL, router_run,
                                                   router_describe, router_destroy};

enum xm_status
xm_router_create(struct xm_engine *engine, const struct xm_router_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    struct router *r = xm_primitive_new(sizeof(*r), &router_ops, engine, err);
    if (!r)
        return XM_NO_MEMORY;
    enum xm_status status = xm_router_steps_init(&r->steps, engine, desc, err);
    if (status != XM_OK) {
        router_destroy(&r->base);
        return status;
    }
    *out = &r->base;
    return XM_OK;
}
