/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a set of experts: the launch of each step. experts.c chooses and builds the kernels
 * and lays out the scratch.
 */
#ifndef XM_PRIMITIVES_MOE_EXPERTS_STEPS_H
#define XM_PRIMITIVES_MOE_EXPERTS_STEPS_H

#include "primitives/form.h"
#include "primitives/moe/experts.h"

/* Parts of a run's scratch, in the order of taking. */
enum { XM_FEW_X, XM_FEW_H, XM_FEW_H_PREPARED, XM_FEW_N };
enum {
    XM_MANY_FIRST,
    XM_MANY_TILE_EXPERT,
    XM_MANY_SOURCE,
    XM_MANY_PLACE,
    XM_MANY_NEXT,
    XM_MANY_XY,
    XM_MANY_H,
    XM_MANY_SCRATCHPAD, /* oneDNN's */
    XM_MANY_N
};
enum { XM_MOE_MAX_PARTS = 8 };

/* One run's context. */
struct xm_moe_call {
    const struct xm_moe_experts *m;
    const struct xm_moe_batch *batch;
    uint64_t slots, tiles;       /* tokens times top_k; the most tiles they can fill */
    struct xm_expert_rows rows;  /* for few tokens: the experts, or a cache's slots … */
    const struct xm_buffer *ids; /* … and which of them                               */
    struct xm_buffer *part[XM_MOE_MAX_PARTS];
    struct xm_queue *queue;
    struct xm_error *err;
    uint32_t *first; /* what moe_sort left in XM_MANY_FIRST, when the host has read it */
};

static inline const struct xm_variant *
xm_moe_row(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return &m->pick[step].table->rows[m->pick[step].row];
}

static inline const struct xm_weight *
xm_moe_gate(const struct xm_moe_experts *m)
{
    return &m->desc.experts.gate->host;
}

static inline const struct xm_weight *
xm_moe_down(const struct xm_moe_experts *m)
{
    return &m->desc.experts.down->host;
}

/* The weight that a step multiplies, or whose activations it moves. */
static inline const struct xm_weight *
xm_moe_weight(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return step == XM_MOE_DOWN || step == XM_MOE_GEMM_DOWN ? xm_moe_down(m)
                                                           : xm_moe_gate(m);
}

/* The form of what a step reads; of what moe_gather writes. */
static inline struct xm_rows_form
xm_moe_form(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    struct xm_rows_form f = xm_form_of(xm_moe_row(m, step)->form, xm_moe_weight(m, step),
                                       step == XM_MOE_DOWN ? XM_F32 : m->desc.src);
    if (f.factor && m->desc.factor)
        f.factor = m->desc.factor;
    return f;
}

/* Columns of h that a work-item of gate and up prepares for down; 0: it writes plain rows only. */
uint64_t xm_moe_h_part(const struct xm_moe_experts *m);

/* Whether oneDNN multiplies for that row; else the kernel is ours. */
bool xm_moe_is_onednn(const struct xm_variant *row, enum xm_moe_step step);
/* Enqueues a step. */
enum xm_status xm_moe_step_run(struct xm_moe_call *c, enum xm_moe_step step);

#endif
