/* SPDX-License-Identifier: Apache-2.0
 *
 * The expert block as exporters write it: the input is repeated (tiled) for every expert. Shared by
 * fuse_vectorized_moe_3gemm and lower_unfused_moe.
 *
 *     experts = X [T,H] -> tile [E,1] -> reshape [E,T,H] -> E experts -> [E,T,H]
 *     routed  = zeros [T,E] -> scatter(ids, weights) -> transpose [E,T] -> reshape [E,..,1]
 *     result  = sum over E of (experts * routed)
 *
 * Some exporters reshape the experts' result to [E,..,H] before the product with `routed`. The
 * pattern macros are for rule tables in .c files. Slots below MOE_BLOCK_SLOTS belong to the block;
 * a pass's own slots have larger numbers.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_MOE_BLOCK_H
#define XM_TRANSFORMATIONS_PASSES_MOE_BLOCK_H

#include "transformations/rewrite/patterns.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOE_X,       /* [T,H]                                         */
    MOE_TILED,   /* [E,T,H]                                       */
    MOE_REPEATS, /* repeats of the tile                           */
    MOE_TILED_DIMS,
    MOE_BASE,    /* the zeros into which weights are scattered    */
    MOE_IDS,     /* [T,K]                                         */
    MOE_WEIGHTS, /* [T,K]                                         */
    MOE_SCATTER_AXIS,
    MOE_SCATTER, /* [T,E]                                         */
    MOE_ORDER,   /* order of the transpose                        */
    MOE_ROUTED,  /* [E,..,1]                                      */
    MOE_ROUTED_DIMS,
    MOE_AXES, /* axes of the sum                               */
    MOE_BLOCK_SLOTS
};

/* clang-format off */
#define TILED PS(MOE_TILED, RESHAPE, P(TILE, VAR(MOE_X), INTS(MOE_REPEATS)), VAR(MOE_TILED_DIMS))
#define ROUTED                                                                            \
    PN(MOE_ROUTED, RESHAPE,                                                               \
       P(TRANSPOSE, PN(MOE_SCATTER, SCATTER_ELEMENTS_UPDATE, VAR(MOE_BASE), VAR(MOE_IDS), \
                       VAR(MOE_WEIGHTS), INTS(MOE_SCATTER_AXIS)), INTS(MOE_ORDER)),       \
       VAR(MOE_ROUTED_DIMS))
/* Matches both forms: the experts' result as it is, or reshaped to more dimensions. */
#define SUM_OF(experts) P(REDUCE_SUM, P(MULTIPLY, THROUGH(experts), ROUTED), INTS(MOE_AXES))
/* clang-format on */

/* Conditions of rules; on false, the reason is in m->why. */
bool xm_moe_tail_holds(struct xm_match *m);
/* Whether `tiled` is a value X [T,H] repeated for `experts` experts; sets *x to X. */
bool xm_moe_is_tiled(struct xm_match *m, const struct xm_value *tiled, int64_t experts,
                     struct xm_value **x);
/* Whether `matmul` multiplies by a weight [experts, N, K], transposed. */
bool xm_moe_is_expert_matmul(struct xm_match *m, const struct xm_value *matmul,
                             int64_t experts);
/* The number of experts E of a block for which xm_moe_tail_holds. */
int64_t xm_moe_experts(const struct xm_match *m);
/* How `gate` and `up` are cut from one product [E,T,2I]: interleaved or stacked, and which is
 * first. XM_GATE_UP_APART: they are not parts of one product. */
enum xm_gate_up xm_moe_form_of(const struct xm_value *gate, const struct xm_value *up);
/* Whether `gate` and `up` are parts of one product, and no other node reads it. */
bool xm_moe_is_gate_and_up(struct xm_match *m, const struct xm_value *gate,
                           const struct xm_value *up);
/* Take the gate part, and the up part, out of a product `both` [..,2I] of rank 3 that has both. */
struct xm_value *xm_moe_gate_of(struct xm_builder *b, const struct xm_moe_attr *a,
                                struct xm_value *both);
struct xm_value *xm_moe_up_of(struct xm_builder *b, const struct xm_moe_attr *a,
                              struct xm_value *both);

/* Adds a note to the graph for each expert block that no pass has fused: the pass that came
 * closest, and the condition that failed. */
void xm_moe_note_unfused(struct xm_graph *g, const struct xm_caps *caps);
/* Adds a note for each expert block in which every expert computes all tokens; called after the
 * pass whose table is `rules`. */
void xm_moe_note_dense(struct xm_graph *g, const struct xm_caps *caps,
                       const struct xm_rule *rules);
/* Fails with XM_UNSUPPORTED if a moe or moe_compressed node is left: the message names it and the
 * condition of the lowering pass that failed. */
enum xm_status xm_moe_ensure_lowered(struct xm_graph *g, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
