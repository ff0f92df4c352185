/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer converts text to token ids and back. This header reads it from a Hugging Face
 * tokenizer.json; plugin/text/gguf/gguf_text.h reads it from the keys of a GGUF file.
 *
 *     text -> added tokens cut out -> normalizer -> pre-tokenizer -> model
 *          -> post-processor -> ids            ids -> token texts -> decoder -> text
 *
 * The model is byte-pair encoding, Unigram or WordPiece. Each stage has a file of its own. An
 * unknown component of tokenizer.json is refused with its name. A tokenizer is immutable and may be
 * used by many threads at once.
 *
 * In text that is not well-formed UTF-8, each maximal ill-formed part is read as U+FFFD. The
 * members "padding" and "truncation" of tokenizer.json are not applied.
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

/* Loads tokenizer.json from a path, or from its n bytes in memory, which are not kept. */
enum xm_status xm_tokenizer_load(const char *path, struct xm_tokenizer **out,
                                 struct xm_error *err);
enum xm_status xm_tokenizer_load_memory(const char *json, size_t n,
                                        struct xm_tokenizer **out, struct xm_error *err);
void xm_tokenizer_free(struct xm_tokenizer *tokenizer); /* NULL is allowed */

/* Appends the ids of `text` (n bytes, which may contain NUL) to `ids`; with `add_special`, also the
 * special tokens that the post-processor puts around them. On failure `ids` has a part of the
 * ids. */
enum xm_status xm_tokenizer_encode(const struct xm_tokenizer *tokenizer, const char *text,
                                   size_t n, bool add_special, struct xm_token_list *ids,
                                   struct xm_error *err);

/* Appends ids like xm_tokenizer_encode, but does not recognise special tokens in bytes whose mark
 * is 1: they are message text (xm_chat_template_render_marked). `marks`: n bytes; NULL: all 0.
 * Added tokens that are not special are recognised everywhere. Text with marks must be well-formed
 * UTF-8. */
enum xm_status xm_tokenizer_encode_marked(const struct xm_tokenizer *tokenizer,
                                          const char *text, const char *marks, size_t n,
                                          bool add_special, struct xm_token_list *ids,
                                          struct xm_error *err);

/* Appends the text of `n` ids. Ids without a token (padding of the vocabulary) give no text and,
 * with `skip_special`, neither do special tokens. */
enum xm_status xm_tokenizer_decode(const struct xm_tokenizer *tokenizer,
                                   const int32_t *ids, size_t n, bool skip_special,
                                   struct xm_strbuf *out, struct xm_error *err);

/* Returns the id of the token spelled `text`; -1: there is none. */
int32_t xm_tokenizer_id_of(const struct xm_tokenizer *tokenizer, const char *text);

/* Returns "BPE", "Unigram" or "WordPiece"; static. */
const char *xm_tokenizer_kind(const struct xm_tokenizer *tokenizer);
/* Returns the largest id + 1, including added tokens. */
size_t xm_tokenizer_vocab_size(const struct xm_tokenizer *tokenizer);

/* Returns the token's text as the file spells it (byte-level vocabularies write a space as U+0120),
 * NUL-terminated, owned by the tokenizer. *n (`n` may be NULL) is its length in bytes. NULL: no
 * token has this id. */
const char *xm_tokenizer_token_text(const struct xm_tokenizer *tokenizer, int32_t id,
                                    size_t *n);
bool xm_tokenizer_is_special(const struct xm_tokenizer *tokenizer, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
