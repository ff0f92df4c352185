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

#include "plugin/text/model_config.h"
#include "plugin/text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds to ids->eos those of the table in end_tokens.c that the tokenizer has. */
void xm_model_ids_add_ends(struct xm_model_ids *ids,
                           const struct xm_tokenizer *tokenizer);

#ifdef __cplusplus
}
#endif
#endif
