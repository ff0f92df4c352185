/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a set of experts: the launch of each step. experts.c chooses and builds the kernels
 * and lays out the scratch.
 */
#ifndef XM_PRIMITIVES_MOE_EXPERTS_STEPS_H
#define XM_PRIMITIVES_MOE_EXPERTS_STEPS_H

#include "primitives/form.h"
#include "primitives/moe/experts.h"

enum { XM_MOE_TILE = 16, XM_MOE_GEMM_ROWS = 8 };
/* Rows of a work-group of the gen kernels, for few tokens and for a tile. */
enum { XM_MOE_GEN_ROWS = 4, XM_MOE_GEN_TILE_ROWS = 64 };

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
    uint32_t **first; /* what moe_sort left in XM_MANY_FIRST, when the host has read it */
};

static inline const struct xm_variant *
xm_moe_row(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return &m->pick[step].table->rows[m->pick[step].row];
}

static inline bool
xm_moe_is_vec(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return xm_moe_row(m, step)->family == XM_FAMILY_VEC;
}

static inline enum xm_form
xm_moe_form(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return xm_moe_row(m, step)->form;
}

/* The launch of each step. */
typedef enum xm_status (*xm_moe_step_fn)(const struct xm_moe_call *c);
extern const xm_moe_step_fn xm_moe_step_fns[XM_MOE_N_STEPS];

#endif
