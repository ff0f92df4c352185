/* SPDX-License-Identifier: Apache-2.0
 *
 * moe_3gemm_fused_compressed: the whole expert block of a layer as one primitive.
 *
 *   route     logits[T,E] -> weights[T,K], ids[T,K]                     moe_route
 *             (for few tokens on GPUs with sub-groups: in moe_gate_up's launch)
 *             or weights and ids are operands; a kernel multiplies
 *             expert scales, or checks ids that may be invalid          moe_take
 *   few       gate, up and activation at once from the token row          moe_gate_up
 *             down per slot (routing weight applied), sum over slots      moe_down, moe_combine
 *   many      count, scan, scatter: tokens in expert order                moe_sort
 *             gather rows, grouped GEMMs over per-expert ranges           moe_gather, moe_gemm_*
 *             back to token order, summed in f32                          moe_combine
 *   shared    an expert that every token visits, with or without a sigmoid gate
 *   part      a rank of a mesh may have some of the experts only: the router sets the ids of others
 *             to -1, and every step skips those slots (kernels/cl/include/own_experts.h)
 *   addend    the residual: the sums over experts begin with it
 *   forms     attributes say what an expert computes: runtime/operations/moe_operation.h
 *
 * Routing, sums over experts and accumulators are f32. The host reads nothing back, unless oneDNN
 * multiplies expert by expert: then, once in a run of many tokens, it waits for the experts'
 * numbers of tiles. Scratch grows with T (the chunk), never with the context. Formulas:
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

/* The weights and biases of a set of experts, one entry for each expert or for each slot of a
 * cache. */
struct xm_expert_rows {
    /* up NULL: gate holds both */
    struct xm_device_weight *gate, *up, *down;
    /* f32; NULL: none; bias_up NULL if gate holds both */
    struct xm_buffer *bias_gate, *bias_up, *bias_down;
    struct xm_buffer *factor; /* f32 [E,I]; NULL: none    */
};

struct xm_moe_desc {
    struct xm_moe_attr attr;
    struct xm_expert_rows experts, shared;        /* referenced; shared.gate NULL: none */
    struct xm_device_weight *shared_gate_gate;    /* [1,H]; NULL: ungated */
    struct xm_buffer *router_bias, *expert_scale; /* f32 [E]; NULL: none */
    /* operands ROUTING and IDS are weights and ids; else ROUTING is logits */
    bool by_ids;
    bool ids_valid;                /* IDS are known to be valid expert ids */
    enum xm_element src, dst, add; /* of x, y and addend */
    /* The form of operand PREPARED, as in struct xm_linear_desc; for the shared expert, too. */
    struct xm_rows_form prepared;
    uint64_t chunk;  /* as in struct xm_linear_desc */
    uint32_t factor; /* as in struct xm_linear_desc */
};

/* Returns NULL if supported on every device, else the reason, a static string. Pure. shared->gate
 * NULL: there is no shared expert. */
const char *xm_moe_supports(const struct xm_moe_attr *a,
                            const struct xm_moe_weights *experts,
                            const struct xm_moe_weights *shared,
                            const struct xm_weight *shared_gate_gate);
/* Returns the form in which experts with this gate weight read x of type `src` for few tokens,
 * which operand PREPARED should have; plain rows if no row can be chosen. `factor` as in struct
 * xm_moe_desc. Builds nothing; XM_FORCE applies. */
struct xm_rows_form xm_moe_reads(struct xm_engine *engine, const struct xm_weight *gate,
                                 enum xm_element src, uint32_t factor);
enum xm_status xm_moe_create(struct xm_engine *engine, const struct xm_moe_desc *desc,
                             struct xm_primitive **out, struct xm_error *err);

/* Creates a cache of at most `bytes` for the routed experts of primitive `moe`, which must outlive
 * the cache (primitives/moe/expert_cache.h). *out is NULL, with XM_OK, if `bytes` do not hold the
 * experts of one token. `queue` writes the cache's tables. Pass the cache to runs as
 * xm_run.experts. */
enum xm_status xm_moe_cache_create(const struct xm_primitive *moe, uint64_t bytes,
                                   struct xm_queue *queue, struct xm_expert_cache **out,
                                   struct xm_error *err);

/* moe_router: logits[T,E] -> weights[T,K] f32, ids[T,K] i32 */
enum { XM_ROUTER_LOGITS, XM_ROUTER_WEIGHTS, XM_ROUTER_IDS, XM_ROUTER_N_OPERANDS };
struct xm_router_desc {
    struct xm_moe_routing routing;
    struct xm_buffer *bias, *expert_scale; /* f32 [E]; NULL: none; referenced */
    /* own_experts above 0: only experts first_expert … first_expert + own_experts - 1 are here.
     * Their ids count from first_expert; the ids of other experts become -1, with weight 0. */
    int64_t first_expert, own_experts;
};
/* Returns NULL if `experts` experts can be routed so, else the reason, a static string. */
const char *xm_router_supports(const struct xm_moe_routing *routing, uint64_t experts);
enum xm_status xm_router_create(struct xm_engine *engine,
                                const struct xm_router_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);

/* gather_matmul: the expert product without fusion, which every device can run in bounded memory.
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
