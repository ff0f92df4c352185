/* SPDX-License-Identifier: Apache-2.0
 *
 * DRY, "don't repeat yourself" (P. E. Weidmann, text-generation-webui, 2024): a penalty for tokens
 * that would make a repetition longer.
 *
 *     n(t)   the length of the longest end of the text that also occurs earlier in it, followed by
 *            token t; it contains no breaker
 *     l(t)   logit of t; becomes l(t) - multiplier * base^(n(t) - allowed) if n(t) >= allowed
 *
 * A breaker is a token, such as a line end, that no repetition contains: repetitions are counted
 * anew behind it.
 */
#ifndef XM_PLUGIN_TEXT_DRY_H
#define XM_PLUGIN_TEXT_DRY_H

#include "plugin/text/sampling.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scratch memory, the caller's. */
struct xm_dry_scratch {
    uint32_t *matches; /* [length of the text] */
    uint32_t *longest; /* [vocab_size], all zeros before and after a call */
};

/* Applies the dry_ parameters of `s` to the logits of the token that follows `text`, which has
 * `length` tokens. All its ids must be in the vocabulary. The time is linear in the length. */
void xm_dry_penalise(const struct xm_sampling *s, const int32_t *text, size_t length,
                     const struct xm_dry_scratch *scratch, float *logits);

#ifdef __cplusplus
}
#endif
#endif
