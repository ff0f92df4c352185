/* SPDX-License-Identifier: Apache-2.0
 *
 * moe_3gemm_fused_compressed: the whole expert block of a layer as one primitive.
 *
 *   route     logits[T,E] -> weights[T,K], ids[T,K]                     moe_route
 *   few       gate, up and activation at once from the token row          moe_gate_up
 *             down per slot (routing weight applied), sum over slots      moe_down, moe_combine
 *   many      count, scan, scatter: tokens in expert order                moe_sort
 *             gather rows, grouped GEMMs over per-expert ranges           moe_gather, moe_gemm_*
 *             back to token order, summed in f32                          moe_combine
 *   shared    expert K of the same block, with or without sigmoid gate
 *   addend    what the block is a branch of (the residual): the sums begin with it
 *   forms     gate and up in a weight each or in one; biases; a clamped activation
 *
 * Routing, sums over experts and accumulators are f32. The host reads nothing back, unless
 * oneDNN multiplies expert by expert: then it waits for the tiles of each, once a run of many
 * tokens. Scratch is bounded by T (the chunk), never by context. Formulas:
 * runtime/reference/reference.h.
 */
#ifndef XM_PRIMITIVES_MOE_MOE_H
#define XM_PRIMITIVES_MOE_MOE_H

#include "primitives/primitive.h"
#include "runtime/reference/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_MOE_OP_HIDDEN, /* [T,H] src */
    XM_MOE_OP_LOGITS, /* [T,E] f32 */
    XM_MOE_OP_OUT,    /* [T,H] dst */
    XM_MOE_OP_ADDEND, /* [T,H] dst, added in before the result is rounded; absent: none */
    XM_MOE_OP_COUNT
};

struct xm_moe_desc {
    struct xm_moe_routing routing;
    enum xm_expert expert;
    enum xm_gate_up gate_up;
    enum xm_activation activation;
    float beta, limit;
    struct xm_device_weight *gate, *up, *down;    /* referenced; up NULL unless apart */
    struct xm_buffer *bias_gate, *bias_down;      /* f32 [E,2I], [E,H]; NULL: none */
    struct xm_buffer *router_bias, *expert_scale; /* f32 [E]; NULL: none */
    struct xm_device_weight *shared_gate, *shared_up,
        *shared_down;                          /* NULL: no shared expert */
    struct xm_device_weight *shared_gate_gate; /* [1,H]; NULL: ungated */
    enum xm_element src, dst;
    uint64_t chunk; /* as in struct xm_linear_desc */
};

/* The host-side shape of a block, for xm_moe_supports before anything is on a device. */
struct xm_moe_shape {
    struct xm_moe_routing routing;
    enum xm_expert expert;
    enum xm_gate_up gate_up;
    enum xm_activation activation;
    const struct xm_weight *gate, *up, *down;
    const struct xm_weight *shared_gate, *shared_up, *shared_down, *shared_gate_gate;
    bool has_bias_gate;
};
/* NULL: supported; else a static sentence. Pure. */
const char *xm_moe_supports(const struct xm_device_info *device,
                            const struct xm_moe_shape *shape);
enum xm_status xm_moe_create(struct xm_engine *engine, const struct xm_moe_desc *desc,
                             struct xm_primitive **out, struct xm_error *err);

/* A cache of at most `bytes` for the routed experts of a moe primitive, which must outlive it
 * (primitives/moe/expert_cache.h); *out is NULL when that is too little for a token. `queue` writes
 * its tables. A run gets it as xm_run.experts. */
enum xm_status xm_moe_cache_create(const struct xm_primitive *moe, uint64_t bytes,
                                   struct xm_queue *queue, struct xm_expert_cache **out,
                                   struct xm_error *err);

/* moe_router: logits[T,E] -> weights[T,K] f32, ids[T,K] i32 */
enum { XM_ROUTER_LOGITS, XM_ROUTER_WEIGHTS, XM_ROUTER_IDS, XM_ROUTER_N_OPERANDS };
struct xm_router_desc {
    struct xm_moe_routing routing;
    struct xm_buffer *bias, *expert_scale; /* f32 [E]; NULL: none; referenced */
};
enum xm_status xm_router_create(struct xm_engine *engine,
                                const struct xm_router_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);

/* gather_matmul: the fallback that every device runs in bounded memory.
 *   out[s,t,:] = a[min(s, S-1), t, :] W[ids[t,s]]^T (+ bias[ids]) */
enum {
    XM_GATHER_MATMUL_A,
    XM_GATHER_MATMUL_IDS,
    XM_GATHER_MATMUL_OUT,
    XM_GATHER_MATMUL_N_OPERANDS
};
struct xm_gather_matmul_desc {
    struct xm_device_weight *weight; /* [E,N,K], referenced */
    struct xm_buffer *bias;          /* f32 [E,N]; NULL: none */
    enum xm_element src, dst, ids;   /* ids: i32 or i64 */
};
const char *xm_gather_matmul_supports(const struct xm_device_info *device,
                                      const struct xm_weight *w);
enum xm_status xm_gather_matmul_create(struct xm_engine *engine,
                                       const struct xm_gather_matmul_desc *desc,
                                       struct xm_primitive **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
