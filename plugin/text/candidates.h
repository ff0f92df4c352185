/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters one row of logits by top_k, top_p and min_p, and draws a token from those left.
 *
 *     order    larger logit first; of equal logits the lower token id
 *     top_k    the first k tokens of the order
 *     top_p    the fewest first tokens whose weights reach top_p of the weights of all that top_k
 *              leaves; at least one
 *     min_p    of these, the tokens whose weight is at least min_p times the largest weight
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

/* Scratch memory for rows of at most vocab_size logits: 20 bytes a token. Used by one thread at a
 * time; a call leaves nothing in it for the next. */
struct xm_candidates;
struct xm_candidates *xm_candidates_create(size_t vocab_size); /* NULL: no memory */
void xm_candidates_free(struct xm_candidates *c);              /* NULL is allowed */

/* The id of the largest logit, the lowest id of equal ones; -1: all n are NaN or -infinity. */
int32_t xm_find_largest(const float *logits, size_t n);

/* The filter leaves no token whose weight is below this, if the largest one has the weight
 * `largest`; > 0. */
int64_t xm_candidates_least(const struct xm_candidate_filter *f, float largest);

/* Draws a token and returns its id. `best`: xm_find_largest of the row, which must be >= 0.
 * `random`: 64 random bits. */
int32_t xm_candidates_draw(struct xm_candidates *c, const float *logits, size_t n,
                           int32_t best, const struct xm_candidate_filter *filter,
                           uint64_t random);

#ifdef __cplusplus
}
#endif
#endif
