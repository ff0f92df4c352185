/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside linear: the variants whose products a library computes, one weight at a time. A library is
 * a table of functions. Destroy the object that it creates for a weight before the engine, the
 * weight and the bias.
 */
#ifndef XM_PRIMITIVES_LINEAR_LINEAR_LIBRARY_H
#define XM_PRIMITIVES_LINEAR_LINEAR_LIBRARY_H

#include "primitives/onednn/onednn.h"
#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A gate: y = act(x W^T + bias) * times, element by element. */
struct xm_library_gate {
    enum xm_activation activation;
    uint64_t times_step; /* elements from one row of `times` to the next */
};
struct xm_library_desc {
    struct xm_device_weight *weight;
    struct xm_buffer *bias;             /* f32 [N]; NULL: none */
    enum xm_element src, dst;           /* f16 or f32 */
    const struct xm_library_gate *gate; /* NULL: the product is no gate */
    /* most tokens of a call, for which the library generates code; 0: the engine's XM_UBATCH */
    uint64_t chunk;
};
struct xm_library_call {
    struct xm_buffer *x, *y;
    struct xm_onednn_span times; /* the factor of a gate; else not used */
    uint64_t tokens;
};
struct xm_linear_library {
    /* Creates the library's object for a weight that it does not refuse. XM_NOT_BUILT: the library
     * has no implementation for it. */
    enum xm_status (*create)(struct xm_engine *engine, const struct xm_library_desc *desc,
                             void **out, struct xm_error *err);
    void (*destroy)(void *linear); /* NULL is allowed */
    /* Returns the bytes that `run` takes from the scratch of primitive `p`. */
    uint64_t (*scratch)(const void *linear, const struct xm_primitive *p,
                        uint64_t tokens);
    /* Enqueues y[tokens, N] = x W^T + bias, or, if the object has a gate, the gate's formula. */
    enum xm_status (*run)(void *linear, const struct xm_library_call *call,
                          struct xm_scratch *s, struct xm_queue *queue,
                          struct xm_error *err);
};

/* oneDNN's CPU engine (onednn_linear.c). Calls must have at least 64 tokens and no gate. */
extern const struct xm_linear_library xm_onednn_linear;
/* Returns NULL if oneDNN has an optimised implementation for this product, else the reason, a
 * static string ("this build has no oneDNN" in builds without it). Thread-safe. */
const char *xm_onednn_linear_refuses(const struct xm_device_info *device,
                                     const struct xm_weight *w, enum xm_element src);
/* How oneDNN's CPU engine computes a product: the element type of both operands, and the number of
 * parts into which each activation is split (their sum is the activation). {XM_DYNAMIC, 0}: it does
 * not compute the product. */
struct xm_onednn_operands {
    enum xm_element element;
    uint32_t parts;
};
struct xm_onednn_operands xm_onednn_linear_operands(const struct xm_device_info *device,
                                                    const struct xm_weight *w,
                                                    enum xm_element src);
/* oneDNN's GPU engine (onednn_gpu_linear.c). */
extern const struct xm_linear_library xm_onednn_gpu_linear;
/* Returns NULL if oneDNN's GPU engine is open on this device and has an optimised implementation
 * for the product, else the reason, a static string. `gate` NULL: a plain product. */
const char *xm_onednn_gpu_linear_refuses(struct xm_engine *engine,
                                         const struct xm_weight *w, enum xm_element src,
                                         enum xm_element dst,
                                         const struct xm_library_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
