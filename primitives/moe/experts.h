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
#include "primitives/product.h"

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

struct xm_moe_experts {
    struct xm_engine *engine;        /* borrowed from the primitive               */
    struct xm_moe_desc desc;         /* of it, its experts: referenced            */
    uint64_t experts, hidden, inter; /* E (of the weights), H, I                  */
    uint64_t all; /* experts that a token may choose: E, or more where these are a part */
    uint64_t top_k;
    /* of the weights that a step multiplies, or whose activations it moves */
    struct xm_product product[XM_MOE_N_STEPS];
    struct xm_pick pick[XM_MOE_N_STEPS];
    struct xm_kernel *kernel[XM_MOE_N_STEPS];
    bool may_route; /* tokens come with logits, which kernels may route by */
    struct xm_kernel
        *routes; /* kernel[XM_MOE_GATE_UP] that does so; NULL: there is none */
    struct xm_converter x[XM_MOE_SORT]; /* what the steps for few tokens read */
    struct xm_onednn_experts *onednn;   /* NULL: not used                     */
    /* The same without tiles of AMX, for runs that give an expert few tokens; NULL: this serves all
     * runs. */
    struct xm_moe_experts *sparse;
};

/* Parts of a run's scratch, in the order of taking; H_PREPARED is taken if gate and up write it. */
enum { XM_FEW_H, XM_FEW_N, XM_FEW_H_PREPARED = XM_FEW_N };
enum {
    XM_MANY_FIRST,
    XM_MANY_TILE_EXPERT,
    XM_MANY_SOURCE,
    XM_MANY_PLACE,
    XM_MANY_NEXT,
    XM_MANY_XY,
    XM_MANY_H,
    XM_MANY_SCRATCHPAD, /* oneDNN's */
    XM_MANY_N
};
enum { XM_MOE_MAX_PARTS = 8 };

/* One run of a set. */
struct xm_moe_call {
    uint64_t tokens;
    struct xm_buffer *x;        /* [T,H] src                                        */
    struct xm_buffer *prepared; /* its first rows as desc.prepared says; NULL: none */
    const struct xm_buffer *ids, *weights; /* [T,K] i32, f32         */
    /* Operands of moe_router, for the launch that also routes; NULL: ids and weights are there */
    const struct xm_operand *routing;
    const struct xm_buffer *add;         /* [T,H] add; NULL: none  */
    struct xm_buffer *out;               /* [T,H] dst              */
    const struct xm_expert_cache *cache; /* NULL: none; for few tokens */
    struct xm_scratch *scratch;
    struct xm_queue *queue;
    struct xm_error *err;
    /* set by the run itself: */
    const struct xm_moe_experts *m;
    uint64_t slots, tiles;      /* tokens times top_k; the most tiles they can fill */
    struct xm_expert_rows rows; /* for few tokens: the experts, or a cache's slots … */
    const struct xm_buffer
        *rows_ids; /* … and which of them                             */
    struct xm_buffer *part[XM_MOE_MAX_PARTS];
    struct xm_buffer *input; /* what a step for few tokens reads */
    uint32_t *first; /* what moe_sort left in XM_MANY_FIRST, when the host has read it */
};

/* NULL: these weights make a set of experts; else a static sentence. */
const char *xm_moe_experts_refuse(enum xm_gate_up gate_up,
                                  const struct xm_moe_weights *w);
/* On failure fini is still to be called. `m` must not move afterwards. */
enum xm_status xm_moe_experts_init(struct xm_moe_experts *m, struct xm_engine *engine,
                                   const struct xm_moe_desc *desc, bool may_route,
                                   struct xm_error *err);
void xm_moe_experts_fini(struct xm_moe_experts *m);
/* Bytes that run takes from a scratch of `p`. */
uint64_t xm_moe_experts_scratch(const struct xm_moe_experts *m,
                                const struct xm_primitive *p, uint64_t tokens);
/* The most routed ids of a call that reads experts by their ids: few tokens. */
uint64_t xm_moe_experts_few(const struct xm_moe_experts *m);
/* Whether a call of so many tokens may have `routing`, unless it has a cache. */
bool xm_moe_experts_route(const struct xm_moe_experts *m, uint64_t tokens);
/* Enqueues every step; what it takes of the call's scratch is free again afterwards. */
enum xm_status xm_moe_experts_run(const struct xm_moe_experts *m,
                                  const struct xm_moe_call *given);
/* Appends the names of the kernels that `tokens` tokens use. */
void xm_moe_experts_describe(const struct xm_moe_experts *m, uint64_t tokens, char *out,
                             size_t out_bytes);

/* ---- inside: experts.c chooses and builds, experts_steps.c launches ------------------ */

static inline const struct xm_variant *
xm_moe_row(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return &m->pick[step].table->rows[m->pick[step].row];
}

static inline const struct xm_weight *
xm_moe_gate(const struct xm_moe_experts *m)
{
    return &m->desc.experts.gate->host;
}

static inline const struct xm_weight *
xm_moe_down(const struct xm_moe_experts *m)
{
    return &m->desc.experts.down->host;
}

/* The form of what a step reads; of what moe_gather writes. */
static inline struct xm_rows_form
xm_moe_form(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return xm_product_form(&m->product[step], xm_moe_row(m, step),
                           step == XM_MOE_DOWN ? XM_F32 : m->desc.src);
}

/* Columns of h that a work-item of gate and up prepares for down; 0: it writes plain rows only. */
uint64_t xm_moe_h_part(const struct xm_moe_experts *m);

/* Whether oneDNN multiplies for that row; else the kernel is ours. */
bool xm_moe_is_onednn(const struct xm_variant *row, enum xm_moe_step step);
/* Enqueues a step. */
enum xm_status xm_moe_step_run(struct xm_moe_call *c, enum xm_moe_step step);

#endif
