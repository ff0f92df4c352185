/* SPDX-License-Identifier: Apache-2.0
 *
 * A prompt (token ids, text or chat messages) and its token ids.
 */
#ifndef XM_PLUGIN_PIPELINE_PROMPT_H
#define XM_PLUGIN_PIPELINE_PROMPT_H

#include "plugin/pipeline/generation_clock.h"
#include "plugin/pipeline/package.h"
#include "plugin/text/token_list.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_prompt_kind {
    XM_PROMPT_IDS,
    XM_PROMPT_TEXT,    /* gets the special tokens that the tokenizer puts around texts */
    XM_PROMPT_MESSAGES /* messages of a chat, which the template turns into text */
};

/* A prompt. The caller owns everything that it points to. */
struct xm_prompt {
    enum xm_prompt_kind kind;
    const int32_t *ids;
    const char *text; /* MESSAGES: a JSON array */
    size_t n;         /* number of ids, or bytes of text */
    /* MESSAGES: a JSON object with more variables for the template; NULL: none. */
    const char *variables;
    /* MESSAGES: the beginning of the answer, appended to the template's text. */
    const char *begun;
    size_t n_begun;
    struct xm_generation_clock *clock; /* NULL: not measured */
};

/* Appends the prompt's token ids to *out. XM_INVALID: an id is not below `vocabulary`. Reads the
 * parts of the package that the kind needs: tokenizer, chat template. `p` may be NULL for ids. */
enum xm_status xm_prompt_encode(struct xm_package *p, const struct xm_prompt *prompt,
                                uint64_t vocabulary, struct xm_token_list *out,
                                struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
