/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer: text to token ids and back. It is read from a Hugging Face tokenizer.json here,
 * and from the keys of a GGUF file by plugin/text/gguf/gguf_text.h.
 *
 *     text -> added tokens cut out -> normalizer -> pre-tokenizer -> model
 *          -> post-processor -> ids            ids -> token texts -> decoder -> text
 *
 * The model is byte-pair encoding, Unigram or WordPiece. Each stage has a file of its own. A
 * component of tokenizer.json that is not known is refused with its name. A tokenizer is immutable
 * and may be used by many threads at once.
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

/* Appends the ids of `text` (n bytes, which may be NUL) to `ids`; with `add_special`, also the
 * special tokens that the post-processor puts around them. On failure `ids` holds a part. */
enum xm_status xm_tokenizer_encode(const struct xm_tokenizer *tokenizer, const char *text,
                                   size_t n, bool add_special, struct xm_token_list *ids,
                                   struct xm_error *err);

/* The same, but in bytes whose mark is 1 no special token is recognised: they are message text
 * (xm_chat_template_render_marked). `marks`: n bytes; NULL: all 0. Added tokens that are not
 * special are recognised everywhere. Text with marks must be well-formed UTF-8. */
enum xm_status xm_tokenizer_encode_marked(const struct xm_tokenizer *tokenizer,
                                          const char *text, const char *marks, size_t n,
                                          bool add_special, struct xm_token_list *ids,
                                          struct xm_error *err);

/* Appends the text of `n` ids. Ids without a token (padding rows of the vocabulary) have no text;
 * with `skip_special`, neither have special tokens. */
enum xm_status xm_tokenizer_decode(const struct xm_tokenizer *tokenizer,
                                   const int32_t *ids, size_t n, bool skip_special,
                                   struct xm_strbuf *out, struct xm_error *err);

/* The id of the token spelled `text`; -1: there is no such token. */
int32_t xm_tokenizer_id_of(const struct xm_tokenizer *tokenizer, const char *text);

/* "BPE", "Unigram" or "WordPiece", static. */
const char *xm_tokenizer_kind(const struct xm_tokenizer *tokenizer);
/* The largest id + 1, added tokens included. */
size_t xm_tokenizer_vocab_size(const struct xm_tokenizer *tokenizer);

/* The token's text as the file spells it (a byte-level space is U+0120), NUL-terminated, owned by
 * the tokenizer. *n (`n` may be NULL) is its length in bytes. NULL: no token has this id. */
const char *xm_tokenizer_token_text(const struct xm_tokenizer *tokenizer, int32_t id,
                                    size_t *n);
bool xm_tokenizer_is_special(const struct xm_tokenizer *tokenizer, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
