/* SPDX-License-Identifier: Apache-2.0
 *
 * The grouped products of experts through oneDNN's GPU engine, for many tokens: what lies
 * between moe_sort and moe_combine. Three matmuls with compressed weights for each expert that
 * has tokens:
 *
 *     g = act(x gate^T)      h = (x up^T) * g      y = h down^T
 *
 * with the activation and the product as post-ops. x, g and h are f16, y is f32.
 */
#ifndef XM_PRIMITIVES_MOE_ONEDNN_EXPERTS_H
#define XM_PRIMITIVES_MOE_ONEDNN_EXPERTS_H

#include "primitives/moe/experts.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_onednn_experts;

/* A batch as moe_sort leaves it; see kernels/cl/moe_sort_ref.cl. */
struct xm_onednn_batch {
    const struct xm_buffer *x;                    /* [T,H] f16 */
    struct xm_buffer *first_tile;                 /* [E + 1] */
    const struct xm_buffer *tile_expert, *source; /* [tiles], [16 tiles] */
    uint64_t tiles;                               /* at most so many are in use */
    struct xm_buffer *y;                          /* [16 tiles, H] f32 */
};

/* NULL: oneDNN's engine is open on this device and takes these experts with an optimised
 * implementation; else a static sentence. */
const char *xm_onednn_experts_refuse(struct xm_engine *engine,
                                     const struct xm_moe_experts_desc *desc);
/* References the weights. XM_NOT_BUILT: oneDNN built no matmul. */
enum xm_status xm_onednn_experts_create(struct xm_engine *engine,
                                        const struct xm_moe_experts_desc *desc,
                                        struct xm_onednn_experts **out,
                                        struct xm_error *err);
void xm_onednn_experts_destroy(struct xm_onednn_experts *o); /* NULL is allowed */
/* What run takes from a scratch of `p`. */
uint64_t xm_onednn_experts_scratch(const struct xm_onednn_experts *o,
                                   const struct xm_primitive *p, uint64_t tiles);
/* Enqueues everything. With several experts it waits once, for first_tile: oneDNN is told on
 * the host how many rows there are. */
enum xm_status xm_onednn_experts_run(const struct xm_onednn_experts *o,
                                     const struct xm_onednn_batch *batch,
                                     struct xm_scratch *s, struct xm_queue *queue,
                                     struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
