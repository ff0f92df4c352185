/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that end a text, by their spelling.
 *
 * The ids in a model's configuration are often not all of them: a chat model names the end of
 * a turn there, and still writes the end of a document, which its tokenizer knows. Only special
 * added tokens count: the same characters as plain text end nothing.
 */
#ifndef XM_PLUGIN_TEXT_END_TOKENS_H
#define XM_PLUGIN_TEXT_END_TOKENS_H

#include "plugin/text/generation_config.h"
#include "plugin/text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds to c->eos those of the table in end_tokens.c that the tokenizer has. */
void xm_generation_config_add_ends(struct xm_generation_config *c,
                                   const struct xm_tokenizer *tokenizer);

#ifdef __cplusplus
}
#endif
#endif
