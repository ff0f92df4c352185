/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory traffic and multiply-adds of a step in a run, from its cost (program.h) and the run's
 * sizes.
 *
 * Each byte counts once, even if a kernel reads it several times: the traffic of a device with an
 * unbounded cache. It is not known which experts a run chooses, so tokens are taken to choose
 * different experts, until all experts of the layer are counted. Multiply-adds are counted for
 * products with weights, attention and products of activations, not for elementwise operations.
 * Host steps have bytes only.
 */
#ifndef XM_PLUGIN_LOWER_STEP_WORK_H
#define XM_PLUGIN_LOWER_STEP_WORK_H

#include "plugin/bind.h"
#include "plugin/lower/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_step_work {
    uint64_t weight_bytes;
    uint64_t activation_bytes; /* read and written */
    uint64_t cache_bytes;      /* K and V of attention, read and written */
    uint64_t multiply_adds;
};

/* Sets *out to the work of step s in a run with these bindings of symbols. `a`: for attention, the
 * sequences of the run (a->slabs is not read); NULL for other steps. */
void xm_step_find_work(const struct xm_program *p, const struct xm_step *s,
                       const struct xm_bindings *bindings,
                       const struct xm_attention_run *a, struct xm_step_work *out);

/* Returns the bytes of weights that are read to compute `rows` rows of the result: dense weights
 * once, rows of a looked-up table and the chosen experts for each row. All experts together are the
 * most that is counted for experts. */
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
