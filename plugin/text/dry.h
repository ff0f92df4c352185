/* SPDX-License-Identifier: Apache-2.0
 *
 * DRY, "don't repeat yourself" (P. E. Weidmann, text-generation-webui, 2024): a penalty for tokens
 * that would make a repetition longer.
 *
 *     n(t)   the most tokens at the end of the text that stand in it earlier, too, with t behind
 *            them; none of them is a breaker
 *     l(t)   l(t) - multiplier * base^(n(t) - allowed)   where n(t) >= allowed
 *
 * A breaker is a token behind which every repetition begins anew, as the end of a line is one.
 */
#ifndef XM_PLUGIN_TEXT_DRY_H
#define XM_PLUGIN_TEXT_DRY_H

#include "plugin/text/sampling.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scratch memory: */
struct xm_dry_scratch {
    uint32_t *matches; /* [length of the text]                          */
    uint32_t *longest; /* [vocab_size], zeros, which it is again behind a call */
};

/* Changes the logits that follow text[length], whose ids are in the vocabulary, by the dry_
 * parameters of `s`. Its time is in proportion to the length. */
void xm_dry_penalise(const struct xm_sampling *s, const int32_t *text, size_t length,
                     const struct xm_dry_scratch *scratch, float *logits);

#ifdef __cplusplus
}
#endif
#endif
