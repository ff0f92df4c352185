/* SPDX-License-Identifier: Apache-2.0
 *
 * linear through oneDNN's CPU engine: the host function of variant linear_gemm_onednn.
 *
 * Dense weights are multiplied where they lie. Quantised ones are dequantised by a kernel
 * into bounded scratch, a stretch of rows at a time, and multiplied from there: oneDNN's
 * own decompression falls back to reference code for grouped zero points. f16 activations
 * go through bf16 where the processor multiplies it in hardware and that pays: tiles (AMX) for
 * quantised weights, vectors too for dense ones. f32 activations stay f32.
 */
#ifndef XM_PRIMITIVES_LINEAR_ONEDNN_LINEAR_H
#define XM_PRIMITIVES_LINEAR_ONEDNN_LINEAR_H

#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_onednn_linear;

/* NULL: oneDNN takes this problem with an optimised implementation; else a static
 * sentence
 * ("built without oneDNN" in builds without it). Thread-safe. `product`: what the products may
 * be rounded to, whatever they are added to. */
const char *xm_onednn_linear_refuses(const struct xm_device_info *device,
                                     const struct xm_weight *w, enum xm_element src,
                                     enum xm_element product);
/* References engine, weight and bias (f32 [N], NULL: none). */
enum xm_status xm_onednn_linear_create(struct xm_engine *engine,
                                       struct xm_device_weight *weight,
                                       struct xm_buffer *bias, enum xm_element src,
                                       enum xm_element product, enum xm_element dst,
                                       struct xm_onednn_linear **out,
                                       struct xm_error *err);
void xm_onednn_linear_destroy(struct xm_onednn_linear *l); /* NULL is allowed */
/* What run takes from a scratch of `p`. */
uint64_t xm_onednn_linear_scratch(const struct xm_onednn_linear *l,
                                  const struct xm_primitive *p, uint64_t tokens);
/* Enqueues y[tokens, N] = x W^T + bias; at least 64 tokens. */
enum xm_status xm_onednn_linear_run(struct xm_onednn_linear *l, struct xm_buffer *x,
                                    struct xm_buffer *y, uint64_t tokens,
                                    struct xm_scratch *s, struct xm_queue *queue,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
