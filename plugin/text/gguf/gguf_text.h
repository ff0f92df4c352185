/* SPDX-License-Identifier: Apache-2.0
 *
 * The text side of a GGUF file: tokenizer, chat template, generation defaults and dimensions, read
 * from its keys "tokenizer.…", "general.…" and "<architecture>.…" into the structs that other
 * formats fill from files of their own.
 *
 *     tokenizer.ggml.model
 *         gpt2        BPE by merges; bytes written as characters; cut as tokenizer.ggml.pre says
 *         llama       BPE by scores; U+0020 written as U+2581; the text is not cut
 *         gemma4      BPE by merges; U+0020 written as U+2581; cut at newlines
 *         whitespace  BPE by merges; characters as they are; cut at white space
 *         t5          Unigram; U+0020 written as U+2581
 *         bert        WordPiece
 *         none        no tokenizer: the model is used with token ids
 *
 * The functions copy everything they need: the file may be closed afterwards. Error messages begin
 * with a key; the caller puts the path before it.
 *
 * Not supported: the models rwkv and plamo2; and the flags lstrip and rstrip of special tokens, for
 * which GGUF has no keys.
 */
#ifndef XM_PLUGIN_TEXT_GGUF_GGUF_TEXT_H
#define XM_PLUGIN_TEXT_GGUF_GGUF_TEXT_H

#include "plugin/readers/gguf.h"
#include "plugin/text/chat_template.h"
#include "plugin/text/generation_config.h"
#include "plugin/text/hyper_parameters.h"
#include "plugin/text/pooling.h"
#include "plugin/text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the file's tokenizer. XM_NOT_FOUND: the file has none. *out is NULL on failure. */
enum xm_status xm_gguf_tokenizer(const struct xm_gguf *g, struct xm_tokenizer **out,
                                 struct xm_error *err);
/* Parses the file's chat template: the one without a name, else the one named "default".
 * XM_NOT_FOUND: it has neither. */
enum xm_status xm_gguf_chat_template(const struct xm_gguf *g,
                                     struct xm_chat_template **out, struct xm_error *err);
/* Parses `text` (n bytes) instead of the file's template; the special tokens are still the
 * file's. */
enum xm_status xm_gguf_chat_template_with(const struct xm_gguf *g, const char *text,
                                          size_t n, struct xm_chat_template **out,
                                          struct xm_error *err);

/* Reads end-of-text ids, suppressed ids and the recommended sampling parameters. A file without any
 * of these keys means greedy generation. On failure `out` still has to be freed. */
enum xm_status xm_gguf_generation(const struct xm_gguf *g,
                                  struct xm_generation_config *out, struct xm_error *err);

/* Reads the file's dimensions. A key that is missing or not a positive whole number counts as not
 * given. */
void xm_gguf_facts(const struct xm_gguf *g, struct xm_hyper_parameters *out);

/* Reads the key "<architecture>.pooling_type". XM_POOLING_LAST: it is missing, or says that there
 * is no pooling. XM_UNSUPPORTED: another kind of pooling, which the error message names. */
enum xm_status xm_gguf_pooling(const struct xm_gguf *g, enum xm_pooling *out,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
