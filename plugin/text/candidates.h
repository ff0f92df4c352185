/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a row of logits that top_k, top_p and min_p leave, and a draw from them.
 *
 *     order    the larger logit first, of equal ones the lower id
 *     top_k    the first k tokens of the order
 *     top_p    the fewest first tokens whose weights reach top_p of the weights of all that top_k
 *              leaves; at least one
 *     min_p    of these the tokens whose weight is at least min_p of the largest
 *     draw     by weight (token_weight.h), in the order of ids
 *
 * Nothing is sorted. A token whose logit is NaN or -infinity is never chosen.
 */
#ifndef XM_PLUGIN_TEXT_CANDIDATES_H
#define XM_PLUGIN_TEXT_CANDIDATES_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_candidate_filter {
    float temperature; /* > 0                  */
    int top_k;         /* <= 0: all tokens     */
    float top_p;       /* 0..1; 1: all tokens  */
    float min_p;       /* 0..1; 0: all tokens  */
};

/* Scratch memory for rows of at most vocab_size logits: 20 bytes a token. Of one thread at a time;
 * nothing stays in it from a call to the next. */
struct xm_candidates;
struct xm_candidates *xm_candidates_create(size_t vocab_size); /* NULL: no memory */
void xm_candidates_free(struct xm_candidates *c);              /* NULL is allowed */

/* The lowest id of those with the largest logit; -1: all n are NaN or -infinity. */
int32_t xm_find_largest(const float *logits, size_t n);

/* Draws a token. `best`: xm_find_largest of the row, >= 0. `unit`: a random number in [0, 1). */
int32_t xm_candidates_draw(struct xm_candidates *c, const float *logits, size_t n,
                           int32_t best, const struct xm_candidate_filter *filter,
                           double unit);

#ifdef __cplusplus
}
#endif
#endif
