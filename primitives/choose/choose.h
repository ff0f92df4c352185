/* SPDX-License-Identifier: Apache-2.0
 *
 * choose: the next token of each of T texts, from its row of logits. It is what the host's sampler
 * chooses from the same logits, seed and number of choices (plugin/text/sampler.h), bit for bit:
 *
 *     penalties -> top_k -> softmax(logits / temperature) -> top_p -> min_p -> draw
 *
 * The tokens go to the host, and to the inputs of the run behind: the ids, the positions and the
 * numbers of cached positions, which both become one more. Two launches, however many texts. With
 * penalties logits change in place, and the chosen token is counted.
 */
#ifndef XM_PRIMITIVES_CHOOSE_CHOOSE_H
#define XM_PRIMITIVES_CHOOSE_CHOOSE_H

#include "primitives/primitive.h"
#include "runtime/operations/token_choice.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
enum {
    XM_CHOOSE_LOGITS,   /* f32 [..,V], T rows                                        */
    XM_CHOOSE_STATE,    /* u8 [T,sizeof(struct xm_token_choice)]: each n is incremented */
    XM_CHOOSE_SEEN,     /* u8 [T,xm_choose_seen_bytes(V, longest window)]; absent if none adjusts */
    XM_CHOOSE_PARTS,    /* scratch: T xm_choose_parts_bytes(V)                       */
    XM_CHOOSE_CHOSEN,   /* i32 [T,XM_CHOOSE_SLOTS]: choice n is at n mod XM_CHOOSE_SLOTS;
                           -1: all logits are -infinity, or one is NaN or +infinity  */
    XM_CHOOSE_IDS,      /* [T]: the chosen ids                                       */
    XM_CHOOSE_POSITION, /* [T], incremented; or absent                               */
    XM_CHOOSE_PAST,     /* i32, whose first T elements are incremented               */
    XM_CHOOSE_N_OPERANDS
};
/* clang-format on */
enum { XM_CHOOSE_SLOTS = 4, XM_CHOOSE_PART = 1024 }; /* kernels/cl/include/choose.h */

struct xm_choose_desc {
    enum xm_element ids, position; /* i32 or i64 */
    /* Whether some text draws; has a top_k other than 0, a top_p below 1; adjusts logits. Kernels
     * are made for that, and take texts that do not, too. */
    bool draws, top_k, top_p, adjusts;
};
/* Makes *desc one for texts of this kind, too; ids and position are the caller's. */
void xm_choose_add(struct xm_choose_desc *desc, const struct xm_token_choice *how);
/* Whether choices that draw are worth it on the device: a work-group makes them, or XM_FORCE says
 * which row does. Others always are. */
bool xm_choose_is_fast(const struct xm_engine *engine);
enum xm_status xm_choose_create(struct xm_engine *engine,
                                const struct xm_choose_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);
/* Bytes of a text. */
uint64_t xm_choose_parts_bytes(uint64_t vocabulary);
/* The same: two numbers a token, and the ring of the window (kernels/cl/include/choose.h). */
uint64_t xm_choose_seen_bytes(uint64_t vocabulary, uint32_t window);
/* Before the first choice of a text that adjusts: what has been seen, as the device reads it, into
 * xm_choose_seen_bytes(vocabulary, how->window) zeros. */
void xm_choose_fill_seen(void *zeros, uint64_t vocabulary,
                         const struct xm_token_choice *how,
                         const struct xm_seen_tokens *tokens);

#ifdef __cplusplus
}
#endif
#endif
