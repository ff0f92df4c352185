/* SPDX-License-Identifier: Apache-2.0
 *
 * The text side of a GGUF file: what its keys "tokenizer.…", "general.…" and those of its
 * architecture say of texts, as the same objects that other formats have files for.
 *
 *     tokenizer.ggml.model
 *         gpt2        bytes as characters, cut by patterns (tokenizer.ggml.pre), merges
 *         llama       U+0020 as U+2581, whole texts, pieces merge by their scores
 *         gemma4      U+0020 as U+2581, cut at newlines, merges
 *         whitespace  characters as they are, cut at white space, merges
 *         none        no tokenizer: the model is used with ids
 *
 * No text is normalized: the keys do not say how, and what made the files does not. Nothing is
 * kept of the file but copies. Sentences begin with a key: the caller puts the file before.
 *
 * Not done: the kinds bert, t5, rwkv and plamo2; the cuts of mmbert; white space that special
 * tokens take with them, which no key tells of.
 */
#ifndef XM_PLUGIN_TEXT_GGUF_GGUF_TEXT_H
#define XM_PLUGIN_TEXT_GGUF_GGUF_TEXT_H

#include "plugin/readers/gguf.h"
#include "plugin/text/chat_template.h"
#include "plugin/text/generation_config.h"
#include "plugin/text/hyper_parameters.h"
#include "plugin/text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* XM_NOT_FOUND: the file has none. *out is NULL on failure. */
enum xm_status xm_gguf_tokenizer(const struct xm_gguf *g, struct xm_tokenizer **out,
                                 struct xm_error *err);
/* The one without a name, else the one named "default". */
enum xm_status xm_gguf_chat_template(const struct xm_gguf *g,
                                     struct xm_chat_template **out, struct xm_error *err);
/* Another template in the place of the file's, with the file's special tokens. */
enum xm_status xm_gguf_chat_template_with(const struct xm_gguf *g, const char *text,
                                          size_t n, struct xm_chat_template **out,
                                          struct xm_error *err);

/* Ids that end a text, ids that are never chosen, and what is recommended for sampling: with none
 * of that said, the likeliest token is taken. On failure `out` still has to be freed. */
enum xm_status xm_gguf_generation(const struct xm_gguf *g,
                                  struct xm_generation_config *out, struct xm_error *err);

/* What is not there, or no positive whole number, is not said. */
void xm_gguf_facts(const struct xm_gguf *g, struct xm_hyper_parameters *out);

#ifdef __cplusplus
}
#endif
#endif
