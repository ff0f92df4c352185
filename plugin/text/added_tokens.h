/* SPDX-License-Identifier: Apache-2.0
 *
 * Added tokens: token texts that are searched for before the normalizer and the model run.
 *
 * Tokens without the flag "normalized" are searched for in the raw text. Tokens with it are
 * searched for in the normalized text between the matches of the others. The leftmost match wins;
 * of matches that begin at the same byte, the longest wins. A token with rstrip also takes the
 * white space behind it, and the next match begins behind that white space. (In Hugging Face's
 * tokenizers a token that begins with white space may overlap it.)
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
    struct xm_slice text; /* the text to search for */
    int32_t id;
    bool special;     /* a control token, not searched for in message text */
    bool single_word; /* matches only if neither neighbour is a word character */
    /* the match includes the white space before or behind the text */
    bool lstrip, rstrip;
};

/* Tokens sorted by the bytes of their texts, for a binary search that narrows by prefix. */
struct xm_added_set {
    struct xm_added_token *tokens; /* owned */
    size_t n, capacity;
    bool starts[256]; /* [b]: some token begins with byte b */
    bool has_special;
};

struct xm_added_tokens {
    struct xm_added_set raw, normalized;
    struct xm_arena arena; /* holds the normalized token texts */
};

/* Bytes [start, end) of the input. id >= 0: they are one added token; XM_NO_TOKEN: they are text
 * between added tokens. */
struct xm_section {
    size_t start, end;
    int32_t id;
};

/* Reads tokenizer.json's array "added_tokens" (NULL: none) into *out and adds the tokens to the
 * vocabulary. `normalizer` is applied to the texts of tokens with the flag "normalized". */
enum xm_status xm_added_tokens_load(yyjson_val *array, struct xm_vocab *vocab,
                                    const struct xm_normalizer *normalizer,
                                    struct xm_added_tokens *out, struct xm_error *err);
/* Adds a token to the set that is searched for in raw text. The vocabulary must have it already;
 * its text is not copied and points into the vocabulary. Call xm_added_tokens_sort after the last
 * one. */
enum xm_status xm_added_tokens_add(struct xm_added_tokens *tokens,
                                   const struct xm_added_token *token,
                                   struct xm_error *err);
/* Sorts both sets; xm_added_set_next needs them sorted. */
void xm_added_tokens_sort(struct xm_added_tokens *tokens);
void xm_added_tokens_free(struct xm_added_tokens *tokens);

/* Returns the section of `text` that begins at byte `from` < text.n: an added token, or the text up
 * to the next one. `marks` (NULL: all zero) has one byte for each byte of `text`, 1 for message
 * text: no special token is found there. */
struct xm_section xm_added_set_next(const struct xm_added_set *set, struct xm_slice text,
                                    const char *marks, size_t from);

#ifdef __cplusplus
}
#endif
#endif
