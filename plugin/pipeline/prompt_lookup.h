/* SPDX-License-Identifier: Apache-2.0
 *
 * Guessing how a text goes on: as it did where its last tokens were before.
 *
 *     … the cat sat on the mat. The dog saw the cat   ──►   sat on the mat
 *
 * A model computes several guessed tokens in about the time of one. Those that it would have chosen
 * itself are kept, the others were for nothing: the text is the same.
 */
#ifndef XM_PLUGIN_PIPELINE_PROMPT_LOOKUP_H
#define XM_PLUGIN_PIPELINE_PROMPT_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_guess {
    const int32_t *ids; /* within the text */
    size_t n;
};

/* At most `most` tokens behind the latest place where the text's last `longest` tokens were before,
 * or as many of them as were. */
struct xm_guess xm_prompt_lookup(const int32_t *text, size_t n, size_t longest,
                                 size_t most);

#ifdef __cplusplus
}
#endif
#endif
