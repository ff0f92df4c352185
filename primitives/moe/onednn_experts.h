/* SPDX-License-Identifier: Apache-2.0
 *
 * The grouped products of experts through oneDNN's GPU engine, for many tokens: the steps between
 * moe_gather_rows_ref and moe_combine. Three matmuls with quantised weights for each expert that
 * has tokens:
 *
 *     g = act(x gate^T)      h = (x up^T) * g      y = h down^T
 *
 * with the activation and the product as post-ops. x, g and h are f16, y is f32.
 *
 * If oneDNN has grouped memory and an optimised matmul for it, each of the three is one call for
 * all experts, which reads on the device how many rows each expert has. Otherwise the host reads
 * these numbers and calls oneDNN for each expert, in pieces of few sizes
 * (primitives/onednn/onednn.h).
 */
#ifndef XM_PRIMITIVES_MOE_ONEDNN_EXPERTS_H
#define XM_PRIMITIVES_MOE_ONEDNN_EXPERTS_H

#include "primitives/moe/experts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns NULL if oneDNN's engine is open on this device and has an optimised implementation for
 * these experts, else the reason, a static string. */
const char *xm_onednn_experts_refuse(struct xm_engine *engine,
                                     const struct xm_moe_desc *desc);
/* Builds the matmuls. The weights must outlive the result. XM_NOT_BUILT: oneDNN built no matmul. */
enum xm_status xm_onednn_experts_create(struct xm_engine *engine,
                                        const struct xm_moe_desc *desc,
                                        struct xm_onednn_experts **out,
                                        struct xm_error *err);
void xm_onednn_experts_destroy(struct xm_onednn_experts *o); /* NULL is allowed */
/* Returns the bytes of the call's part XM_MANY_SCRATCHPAD. */
uint64_t xm_onednn_experts_scratchpad(const struct xm_onednn_experts *o);
/* Returns whether the scratchpad begins with the end of each expert's rows, i32 [E], which
 * moe_gather_rows_ref writes there. */
bool xm_onednn_experts_want_ends(const struct xm_onednn_experts *o);

/* For the next functions the call's parts XM_MANY_… must have room for its tiles. Rows are sorted
 * by expert, each expert's in whole tiles of 16 (kernels/cl/moe_sort_ref.cl). XY holds x in f16,
 * later y in f32; H holds g and h in f16. */

/* Reads the part XM_MANY_FIRST, which moe_sort wrote, into call->first, which the caller frees with
 * xm_free; NULL if the host need not know it. Waits for moe_sort, unless there is only one
 * expert. */
enum xm_status xm_onednn_experts_read(const struct xm_onednn_experts *o,
                                      struct xm_moe_call *call);
/* Enqueues the products g and h of all experts; the next function, y of all experts. */
enum xm_status xm_onednn_experts_gate_up(const struct xm_onednn_experts *o,
                                         const struct xm_moe_call *call);
enum xm_status xm_onednn_experts_down(const struct xm_onednn_experts *o,
                                      const struct xm_moe_call *call);

#ifdef __cplusplus
}
#endif
#endif
