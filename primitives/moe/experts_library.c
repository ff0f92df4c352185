/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a set of experts whose rows are a library's: oneDNN's GPU engine.
 */
#include "primitives/moe/experts_steps.h"
#include "primitives/moe/onednn_experts.h"

static struct xm_onednn_batch
onednn_batch(const struct xm_moe_call *c)
{
    bool wanted = xm_onednn_experts_scratchpad(c->m->onednn) > 0;
    return (struct xm_onednn_batch){.first = c->first,
                                    .tokens = c->batch->tokens,
                                    .tiles = c->tiles,
                                    .xy = c->part[XM_MANY_XY],
                                    .gh = c->part[XM_MANY_H],
                                    .scratchpad =
                                        wanted ? c->part[XM_MANY_SCRATCHPAD] : NULL,
                                    .queue = c->queue};
}

static enum xm_status
onednn_gate_up(struct xm_moe_call *c)
{
    XM_TRY(xm_onednn_experts_read(c->m->onednn, c->part[XM_MANY_FIRST], c->tiles,
                                  c->queue, &c->first, c->err));
    const struct xm_onednn_batch b = onednn_batch(c);
    return xm_onednn_experts_gate_up(c->m->onednn, &b, c->err);
}

static enum xm_status
onednn_down(struct xm_moe_call *c)
{
    const struct xm_onednn_batch b = onednn_batch(c);
    return xm_onednn_experts_down(c->m->onednn, &b, c->err);
}

xm_moe_step_fn
xm_moe_library(const struct xm_variant *row, enum xm_moe_step step)
{
    static const xm_moe_step_fn onednn[XM_MOE_N_STEPS] = {
        [XM_MOE_GEMM_GATE_UP] = onednn_gate_up, [XM_MOE_GEMM_DOWN] = onednn_down};
    return row->family == XM_FAMILY_ONEDNN ? onednn[step] : NULL;
}
