/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside linear: the rows whose products a library multiplies, one weight at a time. What differs
 * between libraries is a table of functions; what is made of a weight is theirs, and dies before
 * the engine, the weight and the bias that it was made of.
 */
#ifndef XM_PRIMITIVES_LINEAR_LINEAR_LIBRARY_H
#define XM_PRIMITIVES_LINEAR_LINEAR_LIBRARY_H

#include "primitives/onednn/onednn.h"
#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One that is a gate: y = act(x W^T + bias) times. */
struct xm_library_gate {
    enum xm_activation activation;
    uint64_t times_step; /* elements from row to row of what it is multiplied by */
};
struct xm_library_desc {
    struct xm_device_weight *weight;
    struct xm_buffer *bias;             /* f32 [N]; NULL: none */
    enum xm_element src, dst;           /* f16 or f32 */
    const struct xm_library_gate *gate; /* NULL: it is none */
    /* tokens at once, at most, to make code for; 0: the engine's XM_UBATCH */
    uint64_t chunk;
};
struct xm_library_call {
    struct xm_buffer *x, *y;
    struct xm_onednn_span times; /* of a gate */
    uint64_t tokens;
};
struct xm_linear_library {
    /* What it makes of a weight that it does not refuse. XM_NOT_BUILT: nothing. */
    enum xm_status (*create)(struct xm_engine *engine, const struct xm_library_desc *desc,
                             void **out, struct xm_error *err);
    void (*destroy)(void *linear); /* NULL is allowed */
    /* What run takes from a scratch of `p`. */
    uint64_t (*scratch)(const void *linear, const struct xm_primitive *p,
                        uint64_t tokens);
    /* Enqueues y[tokens, N] = x W^T + bias, or the gate's. */
    enum xm_status (*run)(void *linear, const struct xm_library_call *call,
                          struct xm_scratch *s, struct xm_queue *queue,
                          struct xm_error *err);
};

/* oneDNN's CPU engine (onednn_linear.c), of at least 64 tokens; never a gate. */
extern const struct xm_linear_library xm_onednn_linear;
/* NULL: it takes this problem with an optimised implementation; else a static sentence ("built
 * without oneDNN" in builds without it). Thread-safe. */
const char *xm_onednn_linear_refuses(const struct xm_device_info *device,
                                     const struct xm_weight *w, enum xm_element src);
/* What its products are of: the element type of both operands, and the parts whose sum an
 * activation is. {XM_DYNAMIC, 0}: it has no product for the weight. */
struct xm_onednn_operands {
    enum xm_element element;
    uint32_t parts;
};
struct xm_onednn_operands xm_onednn_linear_operands(const struct xm_device_info *device,
                                                    const struct xm_weight *w,
                                                    enum xm_element src);
/* oneDNN's GPU engine (onednn_gpu_linear.c). */
extern const struct xm_linear_library xm_onednn_gpu_linear;
/* The same of it, where it is open on this device. gate NULL: it is none. */
const char *xm_onednn_gpu_linear_refuses(struct xm_engine *engine,
                                         const struct xm_weight *w, enum xm_element src,
                                         enum xm_element dst,
                                         const struct xm_library_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
