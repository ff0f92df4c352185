/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters one row of logits by those sampling parameters that decide which tokens are left, and
 * draws one of them.
 *
 *     order      larger logit first; of equal logits the lower token id
 *     top_k      the first k tokens of the order
 *     typical_p  the fewest tokens nearest to the mean logit by weight whose weights reach
 *                typical_p of those of all that top_k leaves; of equally near ones the lower id
 *                first
 *     top_p      the fewest first tokens whose weights reach top_p of the weights of all that are
 *                left; at least one
 *     min_p      of these, the tokens whose weight is at least min_p times the largest weight
 *     xtc        of those with at least xtc_threshold of the weights of all that are left, all but
 *                the last of the order go
 *     mirostat   in their place: the tokens whose weight is at least 2^-most_surprise of all
 *     draw       by weight (token_weight.h), in the order of ids
 *
 * (-log p falls by 1 / temperature where the logit rises by 1, and the entropy is its mean by
 * weight: tokens are as near to the one as their logits are to the mean logit.)
 *
 * Nothing is sorted. A token whose logit is NaN or -infinity is never chosen.
 */
#ifndef XM_PLUGIN_TEXT_CANDIDATES_H
#define XM_PLUGIN_TEXT_CANDIDATES_H

#include <stddef.h>
#include <stdint.h>

#include "plugin/text/sampling.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_draw {
    uint64_t random;      /* bits: which token                                   */
    uint64_t xtc_random;  /* bits: whether xtc applies; only with xtc_probability */
    double most_surprise; /* bits of information; only with mirostat             */
    double surprise;      /* set with mirostat: -log2 p of the token among those left */
};

/* Scratch memory for rows of at most vocab_size logits: 20 bytes a token. Used by one thread at a
 * time; a call leaves nothing in it for the next. */
struct xm_candidates;
struct xm_candidates *xm_candidates_create(size_t vocab_size); /* NULL: no memory */
void xm_candidates_free(struct xm_candidates *c);              /* NULL is allowed */

/* The id of the largest logit, the lowest id of equal ones; -1: all n are NaN or -infinity. */
int32_t xm_find_largest(const float *logits, size_t n);

/* min_p leaves no token whose weight is below this, if the largest one has the weight `largest`;
 * > 0. */
int64_t xm_candidates_least(const struct xm_sampling *s, float largest);
/* Whether typical_p leaves out tokens. */
bool xm_candidates_is_typical(const struct xm_sampling *s);

/* Draws a token by `s`, whose temperature is > 0, and returns its id. `best`: xm_find_largest of
 * the row, which must be >= 0. */
int32_t xm_candidates_draw(struct xm_candidates *c, const float *logits, size_t n,
                           int32_t best, const struct xm_sampling *s,
                           struct xm_draw *draw);

#ifdef __cplusplus
}
#endif
#endif
