/* SPDX-License-Identifier: Apache-2.0
 *
 * choose: the next token of each of T texts, from its row of logits. For the same logits, seed and
 * number of earlier choices it is the token that the host's sampler chooses
 * (plugin/text/sampler.h), bit for bit:
 *
 *     penalties -> top_k -> softmax(logits / temperature) -> top_p -> min_p -> draw
 *
 * The chosen tokens are kept for the host (XM_CHOOSE_CHOSEN) and written to the inputs of the next
 * run: ids; positions and numbers of cached positions, both incremented. There are two launches,
 * for any number of texts. With penalties logits change in place, and the chosen token is counted.
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
    /* u8 [T,xm_choose_seen_bytes(V, longest window)]; absent if no text adjusts */
    XM_CHOOSE_SEEN,
    XM_CHOOSE_PARTS,    /* scratch: u8 [T,xm_choose_parts_bytes(V)] */
    XM_CHOOSE_CHOSEN,   /* i32 [T,XM_CHOOSE_SLOTS]: choice n is at n mod XM_CHOOSE_SLOTS;
                           -1: all logits are -infinity, or one is NaN or +infinity  */
    XM_CHOOSE_IDS,      /* [T]: the chosen ids                                       */
    XM_CHOOSE_POSITION, /* [T], incremented; or absent                               */
    XM_CHOOSE_PAST,     /* i32 [T], incremented */
    XM_CHOOSE_N_OPERANDS
};
/* clang-format on */
enum { XM_CHOOSE_SLOTS = 4, XM_CHOOSE_PART = 1024 }; /* kernels/cl/include/choose.h */

struct xm_choose_desc {
    enum xm_element ids, position; /* i32 or i64 */
    /* Whether any text draws (instead of taking the largest logit); has a top_k other than 0; has a
     * top_p below 1; adjusts logits by penalties. Kernels built for this also serve texts that do
     * less. */
    bool draws, top_k, top_p, adjusts;
};
/* Extends *desc so that its kernels serve a text with the choice `how`, too. Leaves ids and
 * position to the caller. */
void xm_choose_add(struct xm_choose_desc *desc, const struct xm_token_choice *how);
/* Returns whether the device should draw tokens: a kernel other than the reference would run, or
 * XM_FORCE names one. If not, the host draws faster. Taking the largest logit is always faster on
 * the device. */
bool xm_choose_is_fast(const struct xm_engine *engine);
enum xm_status xm_choose_create(struct xm_engine *engine,
                                const struct xm_choose_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);
/* Returns the bytes of one text in XM_CHOOSE_PARTS. */
uint64_t xm_choose_parts_bytes(uint64_t vocabulary);
/* Returns the bytes of one text in XM_CHOOSE_SEEN: two numbers for each token of the vocabulary,
 * then the ring of the last `window` tokens (kernels/cl/include/choose.h). */
uint64_t xm_choose_seen_bytes(uint64_t vocabulary, uint32_t window);
/* Writes the tokens seen so far, in the device's layout, into xm_choose_seen_bytes(vocabulary,
 * how->window) zero bytes. Call it before the first choice of a text that adjusts. */
void xm_choose_fill_seen(void *zeros, uint64_t vocabulary,
                         const struct xm_token_choice *how,
                         const struct xm_seen_tokens *tokens);

#ifdef __cplusplus
}
#endif
#endif
