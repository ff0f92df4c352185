/* SPDX-License-Identifier: Apache-2.0
 *
 * Added tokens: token texts that are searched for before the normalizer and the model run.
 *
 * Most tokens are searched for in the raw text. Tokens marked "normalized" are searched for in the
 * normalized text between the matches of the others. The leftmost match wins; of matches that begin
 * at the same byte, the longest. The next match begins behind the white space that a token with
 * rstrip has taken (Hugging Face's tokenizers let a token that begins with white space overlap it).
 */
#ifndef XM_PLUGIN_TEXT_ADDED_TOKENS_H
#define XM_PLUGIN_TEXT_ADDED_TOKENS_H

#include <yyjson.h>

#include "plugin/text/normalizer.h"
#include "plugin/text/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_added_token {
    struct xm_slice text; /* what is searched for */
    int32_t id;
    bool special;        /* a control token: not searched for in message text        */
    bool single_word;    /* matches only where no word character stands on either side */
    bool lstrip, rstrip; /* the match includes the white space before, behind the text */
};

/* Tokens sorted by the bytes of their texts, for a binary search that narrows by prefix. */
struct xm_added_set {
    struct xm_added_token *tokens; /* owned */
    size_t n, capacity;
    bool starts[256]; /* some token begins with this byte */
    bool has_special;
};

struct xm_added_tokens {
    struct xm_added_set raw, normalized;
    struct xm_arena arena; /* holds the normalized token texts */
};

/* Bytes [start, end) of the input: one added token (id ≥ 0), or text between tokens (id is
 * XM_NO_TOKEN). */
struct xm_section {
    size_t start, end;
    int32_t id;
};

/* Reads the array "added_tokens" (may be NULL) and adds the tokens to the vocabulary. */
enum xm_status xm_added_tokens_load(yyjson_val *array, struct xm_vocab *vocab,
                                    const struct xm_normalizer *normalizer,
                                    struct xm_added_tokens *out, struct xm_error *err);
/* Adds a token of the raw set. It must be in the vocabulary already; its text is not copied and
 * points into the vocabulary. Call xm_added_tokens_sort after the last one. */
enum xm_status xm_added_tokens_add(struct xm_added_tokens *tokens,
                                   const struct xm_added_token *token,
                                   struct xm_error *err);
/* Sorts both sets, which makes them searchable. */
void xm_added_tokens_sort(struct xm_added_tokens *tokens);
void xm_added_tokens_free(struct xm_added_tokens *tokens);

/* The section of `text` that begins at byte `from` < text.n. `marks` (NULL: all zero) has a byte
 * for each byte of text, 1 for message text: no special token is found there. */
struct xm_section xm_added_set_next(const struct xm_added_set *set, struct xm_slice text,
                                    const char *marks, size_t from);

#ifdef __cplusplus
}
#endif
#endif
