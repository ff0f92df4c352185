/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory traffic and multiply-adds of a step in a run, from its cost (program.h) and the run's
 * sizes.
 *
 * Each byte counts once, however often a kernel reads it: what a device with an unbounded cache
 * would move. The chosen experts are not known: each token counts as many experts as it chooses, up
 * to all experts of the layer. Multiply-adds are those with weights, of attention and of products
 * of activations; elementwise operations have none. Host steps have bytes only.
 */
#ifndef XM_PLUGIN_GPU_STEP_WORK_H
#define XM_PLUGIN_GPU_STEP_WORK_H

#include "plugin/bind.h"
#include "plugin/gpu/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_step_work {
    uint64_t weight_bytes;
    uint64_t activation_bytes; /* read and written */
    uint64_t cache_bytes;      /* K and V of attention, read and written */
    uint64_t multiply_adds;
};

/* `a`: for attention, the sequences of the run (its slabs are not read); NULL for other steps. */
void xm_step_find_work(const struct xm_program *p, const struct xm_step *s,
                       const struct xm_bindings *bindings,
                       const struct xm_attention_run *a, struct xm_step_work *out);

/* Bytes of weights that `rows` rows of the result read: dense weights once, experts and a table's
 * rows for each row, and no more than all experts. */
uint64_t xm_step_weight_bytes(const struct xm_step_cost *c, uint64_t rows);

static inline uint64_t
xm_step_work_bytes(const struct xm_step_work *w)
{
    return w->weight_bytes + w->activation_bytes + w->cache_bytes;
}

#ifdef __cplusplus
}
#endif
#endif
