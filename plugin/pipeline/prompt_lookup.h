/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompt lookup: drafts the next tokens of a text from an earlier place where its last tokens
 * occur.
 *
 *     … the cat sat on the mat. The dog saw the cat   ──►   sat on the mat
 *
 * A model computes several drafted tokens in about the time of one. Drafted tokens that the model
 * would have chosen itself are kept and the rest is discarded, so the text is unchanged.
 */
#ifndef XM_PLUGIN_PIPELINE_PROMPT_LOOKUP_H
#define XM_PLUGIN_PIPELINE_PROMPT_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_guess {
    const int32_t *ids; /* points into the text */
    size_t n;
};

/* Finds the latest earlier occurrence of the last `longest` tokens of text[n], or of fewer of them,
 * and returns up to `most` tokens that followed it. n is 0 if there is none. */
struct xm_guess xm_prompt_lookup(const int32_t *text, size_t n, size_t longest,
                                 size_t most);

#ifdef __cplusplus
}
#endif
#endif
