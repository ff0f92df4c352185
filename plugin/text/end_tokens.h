/* SPDX-License-Identifier: Apache-2.0
 *
 * End-of-text tokens found by their spelling.
 *
 * A model's configuration often lacks some of its end-of-text ids: a chat model's file names the
 * end of a turn, but the model may write the end of a document as well. Only special added tokens
 * of the tokenizer count; the same characters as plain text do not end the text.
 */
#ifndef XM_PLUGIN_TEXT_END_TOKENS_H
#define XM_PLUGIN_TEXT_END_TOKENS_H

#include "plugin/text/generation_config.h"
#include "plugin/text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends to c->eos the ids of those spellings listed in end_tokens.c that the tokenizer has as
 * special tokens. */
void xm_generation_config_add_ends(struct xm_generation_config *c,
                                   const struct xm_tokenizer *tokenizer);

#ifdef __cplusplus
}
#endif
#endif
