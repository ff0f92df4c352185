/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiled expert block, as exporters write it; what fuse_vectorized_moe_3gemm and
 * lower_unfused_moe have in common.
 *
 *     experts = X [T,H] -> tile [E,1] -> reshape [E,T,H] -> E experts -> [E,T,H]
 *     routed  = zeros [T,E] -> scatter(ids, weights) -> transpose [E,T] -> reshape [E,..,1]
 *     result  = sum over E of (experts * routed)
 *
 * Some exporters reshape the experts' result to [E,..,H] before the product. The pattern macros are
 * for rule tables in .c files. Slots below MOE_BLOCK_SLOTS belong to the block; a pass's own slots
 * have larger numbers.
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
    MOE_REPEATS, /* of the tile                                   */
    MOE_TILED_DIMS,
    MOE_BASE,    /* what the weights are scattered into           */
    MOE_IDS,     /* [T,K]                                         */
    MOE_WEIGHTS, /* [T,K]                                         */
    MOE_SCATTER_AXIS,
    MOE_SCATTER, /* [T,E]                                         */
    MOE_ORDER,   /* of the transpose                              */
    MOE_ROUTED,  /* [E,..,1]                                      */
    MOE_ROUTED_DIMS,
    MOE_AXES, /* of the sum                                    */
    MOE_BLOCK_SLOTS
};

/* clang-format off */
#define TILED PS(MOE_TILED, RESHAPE, P(TILE, VAR(MOE_X), INTS(MOE_REPEATS)), VAR(MOE_TILED_DIMS))
#define ROUTED                                                                            \
    PN(MOE_ROUTED, RESHAPE,                                                               \
       P(TRANSPOSE, PN(MOE_SCATTER, SCATTER_ELEMENTS_UPDATE, VAR(MOE_BASE), VAR(MOE_IDS), \
                       VAR(MOE_WEIGHTS), INTS(MOE_SCATTER_AXIS)), INTS(MOE_ORDER)),       \
       VAR(MOE_ROUTED_DIMS))
/* Both forms: the experts' result as it is, or reshaped to more dimensions. */
#define SUM_OF(experts) P(REDUCE_SUM, P(MULTIPLY, THROUGH(experts), ROUTED), INTS(MOE_AXES))
/* clang-format on */

/* Conditions; false leaves the sentence in m->why. */
bool xm_moe_tail_holds(struct xm_match *m);
/* Whether `tiled` is a value X [T,H] repeated for `experts` experts; sets *x to X. */
bool xm_moe_is_tiled(struct xm_match *m, const struct xm_value *tiled, int64_t experts,
                     struct xm_value **x);
/* `matmul` multiplies by the transposed [experts, N, K] weight. */
bool xm_moe_is_expert_matmul(struct xm_match *m, const struct xm_value *matmul,
                             int64_t experts);
/* E of a block whose tail holds. */
int64_t xm_moe_experts(const struct xm_match *m);
/* How `gate` and `up` are parts of one product [E,T,2I]: interleaved or stacked, and which is
 * first. XM_GATE_UP_APART: they are not parts of one product. */
enum xm_gate_up xm_moe_form_of(const struct xm_value *gate, const struct xm_value *up);
/* The same, and no other node reads the product. */
bool xm_moe_is_gate_and_up(struct xm_match *m, const struct xm_value *gate,
                           const struct xm_value *up);
/* The gate half and the up half of such a product [..,2I] of rank 3. */
struct xm_value *xm_moe_gate_of(struct xm_builder *b, const struct xm_moe_attr *a,
                                struct xm_value *both);
struct xm_value *xm_moe_up_of(struct xm_builder *b, const struct xm_moe_attr *a,
                              struct xm_value *both);

/* Adds a note to the graph for each block of experts that no pass has fused: the pass that came
 * closest, and the condition that failed. */
void xm_moe_note_unfused(struct xm_graph *g, const struct xm_caps *caps);
/* The same for each block in which every expert computes all tokens; called after the pass with
 * `rules`. */
void xm_moe_note_dense(struct xm_graph *g, const struct xm_caps *caps,
                       const struct xm_rule *rules);
/* XM_UNSUPPORTED: a moe or moe_compressed node is left; the sentence names it, and the condition of
 * the lowering pass that failed. */
enum xm_status xm_moe_ensure_lowered(struct xm_graph *g, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
