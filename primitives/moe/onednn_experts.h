/* SPDX-License-Identifier: Apache-2.0
 *
 * The grouped products of experts through oneDNN's GPU engine, for many tokens: what lies
 * between moe_gather_rows_ref and moe_combine. Three matmuls with compressed weights for each
 * expert that has tokens:
 *
 *     g = act(x gate^T)      h = (x up^T) * g      y = h down^T
 *
 * with the activation and the product as post-ops. x, g and h are f16, y is f32.
 *
 * Where oneDNN has grouped memory and an optimised matmul for it, each of the three is one call
 * for all experts, which reads on the device how many rows each has. Otherwise the host reads
 * that, and calls for each expert, in pieces of few sizes (primitives/onednn/onednn.h).
 */
#ifndef XM_PRIMITIVES_MOE_ONEDNN_EXPERTS_H
#define XM_PRIMITIVES_MOE_ONEDNN_EXPERTS_H

#include "primitives/moe/experts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: oneDNN's engine is open on this device and takes these experts with an optimised
 * implementation; else a static sentence. */
const char *xm_onednn_experts_refuse(struct xm_engine *engine,
                                     const struct xm_moe_desc *desc);
/* The weights must outlive it. XM_NOT_BUILT: oneDNN built no matmul. */
enum xm_status xm_onednn_experts_create(struct xm_engine *engine,
                                        const struct xm_moe_desc *desc,
                                        struct xm_onednn_experts **out,
                                        struct xm_error *err);
void xm_onednn_experts_destroy(struct xm_onednn_experts *o); /* NULL is allowed */
/* It begins with where each expert's rows end, i32 [E], if that is wanted: moe_gather_rows_ref
 * writes it. */
uint64_t xm_onednn_experts_scratchpad(const struct xm_onednn_experts *o);
bool xm_onednn_experts_want_ends(const struct xm_onednn_experts *o);

/* The call's parts XM_MANY_… have room for its tiles. Rows are in the order of experts, an expert's
 * in whole tiles of 16 (kernels/cl/moe_sort_ref.cl). XY is x in f16, then y in f32; H is g and h in
 * f16. */

/* What moe_sort left in FIRST, into call->first for xm_free; NULL where the host need not know it.
 * Waits for it, unless there is only one expert. */
enum xm_status xm_onednn_experts_read(const struct xm_onednn_experts *o,
                                      struct xm_moe_call *call);
/* Enqueue g and h of all experts; y of all experts. */
enum xm_status xm_onednn_experts_gate_up(const struct xm_onednn_experts *o,
                                         const struct xm_moe_call *call);
enum xm_status xm_onednn_experts_down(const struct xm_onednn_experts *o,
                                      const struct xm_moe_call *call);

#ifdef __cplusplus
}
#endif
#endif
