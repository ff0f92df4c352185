/* SPDX-License-Identifier: Apache-2.0
 *
 * moe_router: chooses the experts of each token and their weights from its logits.
 */
#include "primitives/moe/router.h"

#include <inttypes.h>

#include "primitives/moe/moe.h"
#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"

/* Refuses more slots than lanes: lane s of a sub-group of moe_route_sg computes slot s. */
static const char *
more_than_lanes(const void *problem)
{
    const struct xm_router_desc *d = problem;
    return d->routing.top_k > XM_SUB_GROUP
               ? "top_k is above the number of lanes of a sub-group"
               : NULL;
}

/* clang-format off */
static const struct xm_variant rows[] = {
    {"moe_route_sg",  XM_FAMILY_SG,  0, more_than_lanes, {XM_LANES}, .routes = true},
    {"moe_route_gen", XM_FAMILY_GEN, 0, NULL,            {XM_GROUP, XM_GROUP_ITEMS}},
    {"moe_route_ref", XM_FAMILY_ANY, 0, NULL,            {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_moe_route_table = XM_TABLE("moe_route", rows);

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

void
xm_router_put(const struct xm_router_desc *d, const struct xm_operand *o,
              struct xm_args *a)
{
    const struct xm_operand *logits = &o[XM_ROUTER_LOGITS];
    xm_put_buffer(a, "logits", logits->buffer);
    xm_put_buffer(a, "router_bias", d->bias);
    xm_put_buffer(a, "expert_scale", d->expert_scale);
    xm_put_buffer(a, "weights", o[XM_ROUTER_WEIGHTS].buffer);
    xm_put_buffer(a, "ids", o[XM_ROUTER_IDS].buffer);
    xm_put_uint(a, "experts", (uint64_t)logits->dim[logits->rank - 1]);
    xm_put_uint(a, "top_k", (uint64_t)d->routing.top_k);
    xm_put_float(a, "epsilon", d->routing.epsilon);
    xm_put_float(a, "least", d->routing.least_sum);
    xm_put_float(a, "scale", d->routing.scale);
}

size_t
xm_router_own_defines(int64_t first, int64_t own, char *out, size_t n)
{
    return own ? xm_defines_print(out, n,
                                  " -DFIRST_EXPERT=%" PRId64 " -DOWN_EXPERTS=%" PRId64,
                                  first, own)
               : 0;
}

size_t
xm_router_defines(const struct xm_router_desc *d, char *out, size_t n)
{
    const size_t used = xm_defines_print(out, n, "-DROUTING=%d -DNORMALISE=%d",
                                         (int)d->routing.kind, d->routing.normalise);
    return used +
           xm_router_own_defines(d->first_expert, d->own_experts, out + used, n - used);
}

struct xm_router_desc
xm_moe_router_desc(const struct xm_moe_desc *d)
{
    return (struct xm_router_desc){d->attr.routing, d->router_bias, d->expert_scale,
                                   d->attr.first_expert, d->attr.own_experts};
}

bool
xm_router_may_join(const struct xm_primitive *router)
{
    const struct xm_stage *s = &((const struct xm_staged *)router)->stage;
    struct xm_choice choice;
    return !s->pick.forced.has_row && xm_stage_choose(s, NULL, &choice, NULL) == XM_OK &&
           choice.row->routes;
}

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *o, const struct xm_run *run,
    struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_router_desc *d = s->desc;
    const struct xm_operand *logits = &o[XM_ROUTER_LOGITS];
    const uint64_t top_k = (uint64_t)d->routing.top_k, tokens = xm_operand_rows(logits),
                   experts = (uint64_t)logits->dim[logits->rank - 1];
    if (top_k > experts)
        return xm_fail(err, XM_INVALID, "top_k is %llu, but there are %llu experts",
                       (unsigned long long)top_k, (unsigned long long)experts);
    struct xm_args a = {.n = 0};
    xm_router_put(d, o, &a);
    xm_put_uint(&a, "tokens", tokens);
    return xm_stage_go(&s->stage, NULL, tokens, &a, run, err);
}

static void
destroy(struct xm_primitive *p)
{
    const struct xm_router_desc *d = ((struct xm_staged *)p)->desc;
    xm_buffer_unref(d->bias);
    xm_buffer_unref(d->expert_scale);
    xm_primitive_free(p);
}

static const struct xm_staged_kind kind = {
    {"moe_router", NULL, run, xm_staged_describe, destroy, XM_ROLES(xm_roles_1_2)},
    &xm_moe_route_table,
    sizeof(struct xm_router_desc),
    .is_problem = true};

enum xm_status
xm_router_create(struct xm_engine *engine, const struct xm_router_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    /* the number of experts is known in a run only */
    const char *why = xm_router_supports(&desc->routing, INT32_MAX);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "moe_router: %s", why);
    char defines[XM_STAGE_DEFINES];
    xm_router_defines(desc, defines, sizeof(defines));
    XM_TRY(xm_staged_create(&kind, engine, desc, out, err, "%s", defines));
    if (desc->bias)
        xm_buffer_ref(desc->bias);
    if (desc->expert_scale)
        xm_buffer_ref(desc->expert_scale);
    return XM_OK;
}
