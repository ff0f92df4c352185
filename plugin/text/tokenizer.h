/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to token ids and back, from a Hugging Face tokenizer.json; from the keys of a GGUF file:
 * plugin/text/gguf/gguf_text.h.
 *
 *     text -> added tokens cut out -> normalizer -> pre-tokenizer -> model
 *          -> post-processor -> ids            ids -> token texts -> decoder -> text
 *
 * The model is byte-pair encoding, Unigram, or (GGUF files only) WordPiece. Each stage has a file
 * of its own. A component of the file that is not known is an error that names it. A tokenizer is
 * immutable and may be used by many threads at once.
 *
 * Text that is not well-formed UTF-8 is read with U+FFFD for each maximal ill-formed
 * part. "padding" and "truncation" of the file are the caller's matter and not applied.
 */
#ifndef XM_PLUGIN_TEXT_TOKENIZER_H
#define XM_PLUGIN_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/text/token_list.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_tokenizer;

/* From a file / from its content in memory, which is not referred to afterwards. */
enum xm_status xm_tokenizer_load(const char *path, struct xm_tokenizer **out,
                                 struct xm_error *err);
enum xm_status xm_tokenizer_load_memory(const char *json, size_t n,
                                        struct xm_tokenizer **out, struct xm_error *err);
void xm_tokenizer_free(struct xm_tokenizer *tokenizer); /* NULL is allowed */

/* Appends the ids of `text` (n bytes, may hold NUL) to `ids`; with `add_special` also
 * what the post-processor puts around them. On failure `ids` holds a part. */
enum xm_status xm_tokenizer_encode(const struct xm_tokenizer *tokenizer, const char *text,
                                   size_t n, bool add_special, struct xm_token_list *ids,
                                   struct xm_error *err);

/* The same, but that no special token is found where `marks` (n bytes; NULL: none is set) are set:
 * that text is content, as xm_chat_template_render_marked() says. Other added tokens are found
 * there, and nothing else depends on the marks. Text with marks must be well-formed UTF-8. */
enum xm_status xm_tokenizer_encode_marked(const struct xm_tokenizer *tokenizer,
                                          const char *text, const char *marks, size_t n,
                                          bool add_special, struct xm_token_list *ids,
                                          struct xm_error *err);

/* Appends the text of `ids`. Ids without a token (padding rows) give nothing; with
 * `skip_special` special tokens neither. */
enum xm_status xm_tokenizer_decode(const struct xm_tokenizer *tokenizer,
                                   const int32_t *ids, size_t n, bool skip_special,
                                   struct xm_strbuf *out, struct xm_error *err);

/* -1: no such token. */
int32_t xm_tokenizer_id_of(const struct xm_tokenizer *tokenizer, const char *text);

/* "BPE", "Unigram" or "WordPiece", static. */
const char *xm_tokenizer_kind(const struct xm_tokenizer *tokenizer);
/* The largest id + 1, added tokens included. */
size_t xm_tokenizer_vocab_size(const struct xm_tokenizer *tokenizer);

/* As the file spells it (a byte-level space is U+0120), NUL-terminated, owned by the
 * tokenizer; *n (may be NULL) is its length. NULL: no token has this id. */
const char *xm_tokenizer_token_text(const struct xm_tokenizer *tokenizer, int32_t id,
                                    size_t *n);
bool xm_tokenizer_is_special(const struct xm_tokenizer *tokenizer, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
