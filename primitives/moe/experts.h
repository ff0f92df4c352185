/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of experts and the steps that run it on routed tokens: the routed experts of a
 * block, or its shared expert as a set of one (E = 1, K = 1). Steps and formats:
 * primitives/moe/moe.h.
 */
#ifndef XM_PRIMITIVES_MOE_EXPERTS_H
#define XM_PRIMITIVES_MOE_EXPERTS_H

#include "primitives/args.h"
#include "primitives/moe/expert_cache.h"
#include "primitives/moe/moe.h"
#include "primitives/variant.h"

enum xm_moe_step {
    XM_MOE_GATE_UP,
    XM_MOE_DOWN,
    XM_MOE_SORT,
    XM_MOE_GATHER,
    XM_MOE_GEMM_GATE_UP,
    XM_MOE_GEMM_DOWN,
    XM_MOE_COMBINE,
    XM_MOE_N_STEPS /* XM_MOE_N_TABLES of them */
};

struct xm_onednn_experts;
struct xm_moe_experts;

/* What the rows of a step's table are asked about. */
struct xm_moe_problem {
    struct xm_product product;
    const struct xm_moe_experts *m; /* NULL: asked before there are any; few tokens */
};

struct xm_moe_experts {
    struct xm_engine *engine;        /* borrowed from the primitive               */
    struct xm_moe_desc desc;         /* of it, its experts: referenced            */
    uint64_t experts, hidden, inter; /* E, H, I                                   */
    uint64_t top_k;
    uint32_t forms; /* 1 << form of those that may be used                        */
    struct xm_moe_problem problem[XM_MOE_N_STEPS];
    struct xm_pick pick[XM_MOE_N_STEPS];
    struct xm_kernel *kernel[XM_MOE_N_STEPS];
    struct xm_kernel *prepare[XM_MOE_N_STEPS]; /* what makes the form; NULL: none */
    struct xm_onednn_experts *onednn; /* NULL: not used                           */
};

/* What one run of a set reads and writes. */
struct xm_moe_batch {
    uint64_t tokens;
    const struct xm_buffer *x; /* [T,H] src                       */
    /* its first rows as desc.prepared says; NULL: none */
    const struct xm_buffer *prepared;
    const struct xm_buffer *ids, *weights; /* [T,K] i32, f32                 */
    const struct xm_buffer *add;           /* [T,H] add; NULL: none           */
    struct xm_buffer *out;                 /* [T,H] dst                       */
    const struct xm_expert_cache *cache;   /* NULL: none; for few tokens      */
};

/* NULL: these weights make a set of experts; else a static sentence. */
const char *xm_moe_experts_refuse(enum xm_gate_up gate_up,
                                  const struct xm_moe_weights *w);
/* On failure fini is still to be called. `m` must not move afterwards. */
enum xm_status xm_moe_experts_init(struct xm_moe_experts *m, struct xm_engine *engine,
                                   const struct xm_moe_desc *desc, struct xm_error *err);
void xm_moe_experts_fini(struct xm_moe_experts *m);
/* Bytes that run takes from a scratch of `p`. */
uint64_t xm_moe_experts_scratch(const struct xm_moe_experts *m,
                                const struct xm_primitive *p, uint64_t tokens);
/* The most routed ids of a call that reads experts by their ids: few tokens. */
uint64_t xm_moe_experts_few(const struct xm_moe_experts *m);
/* Enqueues every step; takes scratch from what is left of `scratch`. */
enum xm_status xm_moe_experts_run(const struct xm_moe_experts *m,
                                  const struct xm_moe_batch *batch,
                                  struct xm_scratch *scratch, struct xm_queue *queue,
                                  struct xm_error *err);
/* Appends the names of the kernels that `tokens` tokens use. */
void xm_moe_experts_describe(const struct xm_moe_experts *m, uint64_t tokens, char *out,
                             size_t out_bytes);

#endif
