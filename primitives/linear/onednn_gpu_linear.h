/* SPDX-License-Identifier: Apache-2.0
 *
 * linear through oneDNN's GPU engine: variant linear_gemm_onednn_gpu. Quantised weights are
 * multiplied as they are; activations are f16. The tokens are cut into pieces of few sizes
 * (primitives/onednn/onednn.h), all built at creation.
 */
#ifndef XM_PRIMITIVES_LINEAR_ONEDNN_GPU_LINEAR_H
#define XM_PRIMITIVES_LINEAR_ONEDNN_GPU_LINEAR_H

#include "primitives/onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_onednn_gpu_linear;

/* One that is a gate: y = act(x W^T + bias) times. */
struct xm_onednn_gate {
    enum xm_activation activation;
    uint64_t times_step; /* elements from row to row of what it is multiplied by */
};

/* NULL: oneDNN's engine is open on this device and takes the problem with an optimised
 * implementation; else a static sentence. gate NULL: it is none. */
const char *xm_onednn_gpu_linear_refuses(struct xm_engine *engine,
                                         const struct xm_weight *w, enum xm_element src,
                                         enum xm_element dst,
                                         const struct xm_onednn_gate *gate);
/* Activations are f16: xm_onednn_gpu_linear_refuses has looked. */
struct xm_onednn_gpu_linear_desc {
    struct xm_device_weight *weight;   /* referenced */
    struct xm_buffer *bias;            /* f32 [N]; NULL: none; referenced */
    enum xm_element dst;               /* f16 or f32 */
    const struct xm_onednn_gate *gate; /* NULL: it is none */
    uint64_t chunk; /* tokens: no piece has more; 0: the engine's XM_UBATCH */
};
/* XM_NOT_BUILT: oneDNN built no matmul. */
enum xm_status xm_onednn_gpu_linear_create(struct xm_engine *engine,
                                           const struct xm_onednn_gpu_linear_desc *desc,
                                           struct xm_onednn_gpu_linear **out,
                                           struct xm_error *err);
void xm_onednn_gpu_linear_destroy(struct xm_onednn_gpu_linear *l); /* NULL is allowed */
/* What run takes from a scratch of `p`. */
uint64_t xm_onednn_gpu_linear_scratch(const struct xm_onednn_gpu_linear *l,
                                      const struct xm_primitive *p);
struct xm_onednn_gpu_linear_call {
    struct xm_buffer *x, *y;
    struct xm_onednn_span times; /* of a gate */
    uint64_t tokens;
};
/* Enqueues y[tokens, N] = x W^T + bias, or the gate's. */
enum xm_status xm_onednn_gpu_linear_run(const struct xm_onednn_gpu_linear *l,
                                        const struct xm_onednn_gpu_linear_call *call,
                                        struct xm_scratch *s, struct xm_queue *queue,
                                        struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
