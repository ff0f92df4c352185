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
    struct xm_engine *engine; /* borrowed from the primitive               */
    /* the primitive's; its experts are referenced */
    struct xm_moe_desc desc;
    uint64_t experts, hidden, inter; /* E (of the weights), H, I                  */
    /* experts that a token may choose: E, or more if this rank has only a part of them */
    uint64_t all;
    uint64_t top_k;
    /* of the weights that the step multiplies, or whose activations it packs */
    struct xm_product product[XM_MOE_N_STEPS];
    struct xm_pick pick[XM_MOE_N_STEPS];
    struct xm_kernel *kernel[XM_MOE_N_STEPS];
    bool may_route; /* tokens come with logits, and moe_gate_up may route by them */
    /* kernel[XM_MOE_GATE_UP] that also routes; NULL: there is none */
    struct xm_kernel *routes;
    /* converters of what the steps for few tokens read */
    struct xm_converter x[XM_MOE_SORT];
    struct xm_onednn_experts *onednn; /* NULL: not used                     */
    /* A second set without AMX tiles, for runs that give each expert few tokens; NULL: this set
     * serves all runs. */
    struct xm_moe_experts *sparse;
};

/* Parts of a run's scratch, in the order in which they are taken. XM_FEW_H_PREPARED is taken only
 * if moe_gate_up writes h in prepared form. */
enum { XM_FEW_H, XM_FEW_N, XM_FEW_H_PREPARED = XM_FEW_N };
enum {
    XM_MANY_FIRST,
    XM_MANY_TILE_EXPERT,
    XM_MANY_SOURCE,
    XM_MANY_PLACE,
    XM_MANY_NEXT,
    XM_MANY_XY,
    XM_MANY_H,
    XM_MANY_SCRATCHPAD, /* scratchpad of oneDNN */
    XM_MANY_N
};
enum { XM_MOE_MAX_PARTS = 8 };

/* One run of a set of experts. */
struct xm_moe_call {
    uint64_t tokens;
    struct xm_buffer *x;        /* [T,H] src                                        */
    struct xm_buffer *prepared; /* x in form desc.prepared; NULL: none */
    const struct xm_buffer *ids, *weights; /* [T,K] i32, f32         */
    /* operands of moe_router, if moe_gate_up is to route; NULL: ids and weights are there
     * already */
    const struct xm_operand *routing;
    const struct xm_buffer *add;         /* [T,H] add; NULL: none  */
    struct xm_buffer *out;               /* [T,H] dst              */
    const struct xm_expert_cache *cache; /* NULL: none; for few tokens */
    struct xm_scratch *scratch;
    struct xm_queue *queue;
    struct xm_error *err;
    /* set by the run itself: */
    const struct xm_moe_experts *m;
    /* tokens * top_k; the most tiles of 16 tokens that they can fill */
    uint64_t slots, tiles;
    /* for few tokens: the experts, or a cache's slots */
    struct xm_expert_rows rows;
    /* [T,K]: expert ids, or slot numbers, into `rows` */
    const struct xm_buffer *rows_ids;
    struct xm_buffer *part[XM_MOE_MAX_PARTS];
    /* activations that the next step for few tokens reads */
    struct xm_buffer *input;
    /* host copy of XM_MANY_FIRST, which moe_sort wrote; NULL: not read */
    uint32_t *first;
};

/* Returns NULL if these weights make a set of experts, else the reason, a static string. */
const char *xm_moe_experts_refuse(enum xm_gate_up gate_up,
                                  const struct xm_moe_weights *w);
/* Chooses and builds the kernels. Call xm_moe_experts_fini even after a failure. `m` must not move
 * afterwards. */
enum xm_status xm_moe_experts_init(struct xm_moe_experts *m, struct xm_engine *engine,
                                   const struct xm_moe_desc *desc, bool may_route,
                                   struct xm_error *err);
void xm_moe_experts_fini(struct xm_moe_experts *m);
/* Returns the bytes that xm_moe_experts_run takes from the scratch of primitive `p`. */
uint64_t xm_moe_experts_scratch(const struct xm_moe_experts *m,
                                const struct xm_primitive *p, uint64_t tokens);
/* Returns the most routed ids (tokens * top_k) of a call that runs the steps for few tokens, which
 * read experts by id. */
uint64_t xm_moe_experts_few(const struct xm_moe_experts *m);
/* Returns whether a call of `tokens` tokens without a cache may have `routing`. */
bool xm_moe_experts_route(const struct xm_moe_experts *m, uint64_t tokens);
/* Enqueues every step; scratch that it takes is free again when it returns, for later launches in
 * the queue. */
enum xm_status xm_moe_experts_run(const struct xm_moe_experts *m,
                                  const struct xm_moe_call *given);
/* Appends the names of the kernels that run `tokens` tokens. */
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

/* Returns the form of the activations that a step reads; for XM_MOE_GATHER, that it writes. */
static inline struct xm_rows_form
xm_moe_form(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return xm_product_form(&m->product[step], xm_moe_row(m, step),
                           step == XM_MOE_DOWN ? XM_F32 : m->desc.src);
}

/* Returns the columns of h that a work-item of gate and up prepares for down; 0: it writes plain
 * rows only. */
uint64_t xm_moe_h_part(const struct xm_moe_experts *m);

/* Returns whether oneDNN runs the step for that row; else a kernel of ours does. */
bool xm_moe_is_onednn(const struct xm_variant *row, enum xm_moe_step step);
/* Enqueues a step. */
enum xm_status xm_moe_step_run(struct xm_moe_call *c, enum xm_moe_step step);

#endif
