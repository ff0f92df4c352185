/* SPDX-License-Identifier: Apache-2.0
 *
 * moe_3gemm_fused_compressed: the whole expert block of a layer as one primitive.
 *
 *   route     logits[T,E] -> weights[T,K], ids[T,K]                     moe_route
 *             (for few tokens on GPUs with sub-groups: in moe_gate_up's launch)
 *             or weights and ids as they come; with scales, or where
 *             an id could be no expert's                                moe_take
 *   few       gate, up and activation at once from the token row          moe_gate_up
 *             down per slot (routing weight applied), sum over slots      moe_down, moe_combine
 *   many      count, scan, scatter: tokens in expert order                moe_sort
 *             gather rows, grouped GEMMs over per-expert ranges           moe_gather, moe_gemm_*
 *             back to token order, summed in f32                          moe_combine
 *   shared    expert K of the same block, with or without sigmoid gate
 *   part      the weights may have some of the experts only: the slots of others are -1 behind
 *             route, and every step passes them by (kernels/cl/include/own_experts.h)
 *   addend    what the block is a branch of (the residual): the sums begin with it
 *   forms     what an expert does is said by attributes: runtime/operations/moe_operation.h
 *
 * Routing, sums over experts and accumulators are f32. The host reads nothing back, unless
 * oneDNN multiplies expert by expert: then it waits for the tiles of each, once a run of many
 * tokens. Scratch is bounded by T (the chunk), never by context. Formulas:
 * runtime/reference/reference.h.
 */
#ifndef XM_PRIMITIVES_MOE_MOE_H
#define XM_PRIMITIVES_MOE_MOE_H

#include "primitives/form.h"
#include "primitives/primitive.h"
#include "runtime/operations/moe_operation.h"
#include "runtime/reference/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a set of experts consists of: an entry an expert, or a slot of a cache. */
struct xm_expert_rows {
    struct xm_device_weight *gate, *up, *down;         /* up NULL unless apart       */
    struct xm_buffer *bias_gate, *bias_up, *bias_down; /* f32; NULL: none; up as above */
    struct xm_buffer *factor;                          /* f32 [E,I]; NULL: none    */
};

struct xm_moe_desc {
    struct xm_moe_attr attr;
    struct xm_expert_rows experts, shared;        /* referenced; shared.gate NULL: none */
    struct xm_device_weight *shared_gate_gate;    /* [1,H]; NULL: ungated */
    struct xm_buffer *router_bias, *expert_scale; /* f32 [E]; NULL: none */
    bool by_ids;    /* operands ROUTING and IDS are weights and ids, not logits */
    bool ids_valid; /* the latter are experts', whatever the numbers that chose them */
    enum xm_element src, dst, add; /* of x, y and addend */
    /* What operand PREPARED is, as in struct xm_linear_desc; for the shared expert, too. */
    struct xm_rows_form prepared;
    uint64_t chunk;  /* as in struct xm_linear_desc */
    uint32_t factor; /* as well */
};

/* NULL: supported on every device; else a static sentence. Pure. shared->gate NULL: none. */
const char *xm_moe_supports(const struct xm_moe_attr *a,
                            const struct xm_moe_weights *experts,
                            const struct xm_moe_weights *shared,
                            const struct xm_weight *shared_gate_gate);
/* The form in which experts with such a gate will read x of type `src` where there are few tokens:
 * what PREPARED is good for. Plain rows where none is chosen. `factor` as in the description.
 * Creates nothing; XM_FORCE counts. */
struct xm_rows_form xm_moe_reads(struct xm_engine *engine, const struct xm_weight *gate,
                                 enum xm_element src, uint32_t factor);
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
    /* own_experts above 0: ids are numbers among experts first_expert … first_expert + own_experts
     * - 1; those of other experts are -1, with weight 0. */
    int64_t first_expert, own_experts;
};
/* Whether top-k of that many experts can be chosen so. */
const char *xm_router_supports(const struct xm_moe_routing *routing, uint64_t experts);
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
