/* SPDX-License-Identifier: Apache-2.0
 *
 * choose: the next token of a text, from a row of logits. It is what the host's sampler chooses
 * from the same logits, seed and number of choices (plugin/text/sampler.h), bit for bit:
 *
 *     penalties -> top_k -> softmax(logits / temperature) -> top_p -> min_p -> draw
 *
 * The token goes to the host, and to the inputs of the run behind: its id, its position and the
 * number of cached positions, which both become one more. Two launches. With penalties logits
 * change in place, and the chosen token is counted.
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
    XM_CHOOSE_LOGITS,   /* f32 [..,V], one row                                       */
    XM_CHOOSE_STATE,    /* struct xm_token_choice, whose n is incremented            */
    XM_CHOOSE_SEEN,     /* xm_choose_seen_bytes(V, window); absent if none adjusts   */
    XM_CHOOSE_PARTS,    /* scratch: xm_choose_parts_bytes(V)                         */
    XM_CHOOSE_CHOSEN,   /* i32 [XM_CHOOSE_SLOTS]: choice n is at n mod XM_CHOOSE_SLOTS;
                           -1: all logits are -infinity, or one is NaN or +infinity  */
    XM_CHOOSE_IDS,      /* [1]: the chosen id                                        */
    XM_CHOOSE_POSITION, /* [1], incremented; or absent                               */
    XM_CHOOSE_PAST,     /* i32, whose first element is incremented                   */
    XM_CHOOSE_N_OPERANDS
};
/* clang-format on */
enum { XM_CHOOSE_SLOTS = 4, XM_CHOOSE_PART = 1024 }; /* kernels/cl/include/choose.h */

struct xm_choose_desc {
    enum xm_element ids, position; /* i32 or i64 */
    /* Of all states: it draws; its top_k is not 0, its top_p below 1; it adjusts logits. Kernels
     * are made for that. */
    bool draws, top_k, top_p, adjusts;
};
/* Those of choices of this kind. */
struct xm_choose_desc xm_choose_desc_of(const struct xm_token_choice *how,
                                        enum xm_element ids, enum xm_element position);
/* Whether choices that draw are worth it on the device: a work-group makes them, or XM_FORCE says
 * which row does. Others always are. */
bool xm_choose_is_fast(const struct xm_engine *engine);
enum xm_status xm_choose_create(struct xm_engine *engine,
                                const struct xm_choose_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);
uint64_t xm_choose_parts_bytes(uint64_t vocabulary);
/* Two numbers a token, and the ring of the window (kernels/cl/include/choose.h). */
uint64_t xm_choose_seen_bytes(uint64_t vocabulary, uint32_t window);
/* Writes the state, and what has been seen, before the first choice of a text. `seen`, NULL if
 * nothing adjusts, has room for how->window; `how` must not change until the choice has been waited
 * for, as with xm_queue_send. */
enum xm_status xm_choose_begin(struct xm_queue *q, struct xm_buffer *state,
                               struct xm_buffer *seen, uint64_t vocabulary,
                               const struct xm_token_choice *how,
                               const struct xm_seen_tokens *tokens, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
