/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies to one row of logits the sampling parameters that leave out tokens, and draws one of the
 * tokens that remain.
 *
 *     order      larger logit first; of equal logits the lower token id first
 *     top_k      keeps the first k tokens of the order
 *     typical_p  keeps the tokens nearest to the mean logit (averaged by weight): the fewest whose
 *                weights reach typical_p of the weights of all that top_k keeps; of equally near
 *                tokens the lower id first
 *     top_p      keeps the fewest first tokens whose weights reach top_p of the weights of all
 *                tokens kept so far; at least one
 *     min_p      keeps the tokens whose weight is at least min_p times the largest weight
 *     xtc        of the tokens with at least xtc_threshold of the weights of all tokens kept,
 *                drops all but the last of the order
 *     mirostat   replaces all filters above: keeps the tokens whose weight is at least
 *                2^-most_surprise of the weights of all tokens
 *     draw       one token by weight (token_weight.h), in the order of ids
 *
 * typical_p is defined by the distance of -log p from the entropy, the mean of -log p. Since -log p
 * is a linear function of the logit, the distance of the logit from the mean logit gives the same
 * order.
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
    uint64_t random; /* random bits that select the token */
    /* random bits that decide whether xtc applies; read only with xtc_probability */
    uint64_t xtc_random;
    double most_surprise; /* m of mirostat, in bits; read only with mirostat */
    /* set with mirostat: -log2 of the token's probability among those kept */
    double surprise;
};

/* Scratch memory for rows of at most vocab_size logits: 20 bytes a token. Used by one thread at a
 * time; no state is kept between calls. */
struct xm_candidates;
struct xm_candidates *xm_candidates_create(size_t vocab_size); /* NULL: no memory */
void xm_candidates_free(struct xm_candidates *c);              /* NULL is allowed */

/* Returns the id of the largest logit, of equal ones the lowest id; -1: all n are NaN or
 * -infinity. */
int32_t xm_find_largest(const float *logits, size_t n);

/* Returns the smallest weight (> 0) that min_p keeps, if the largest weight is `largest`. */
int64_t xm_candidates_least(const struct xm_sampling *s, float largest);
/* Returns whether typical_p is on, so that it may leave out tokens. */
bool xm_candidates_is_typical(const struct xm_sampling *s);

/* Draws a token by `s`, whose temperature is > 0, and returns its id. `best` is the result of
 * xm_find_largest for the row, and must be >= 0. */
int32_t xm_candidates_draw(struct xm_candidates *c, const float *logits, size_t n,
                           int32_t best, const struct xm_sampling *s,
                           struct xm_draw *draw);

#ifdef __cplusplus
}
#endif
#endif
