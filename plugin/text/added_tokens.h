/* SPDX-License-Identifier: Apache-2.0
 *
 * Added tokens: texts that are found before anything else looks at the input.
 *
 * Most are matched against the raw text; those marked "normalized" against each part that
 * is left, after the normalizer. The leftmost match wins, the longest of those that begin
 * at the same place. White space that a token with rstrip has taken is gone for the next
 * one (the reference lets a token that itself begins with white space overlap it).
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
    bool special;        /* a control token: never found in content          */
    bool single_word;    /* only between characters that are not of a word   */
    bool lstrip, rstrip; /* takes the white space before / behind it with it */
};

/* Tokens in the order of their bytes, for a binary search that narrows by prefix. */
struct xm_added_set {
    struct xm_added_token *tokens; /* owned */
    size_t n, capacity;
    bool starts[256]; /* some token begins with this byte */
    bool has_special;
};

struct xm_added_tokens {
    struct xm_added_set raw, normalized;
    struct xm_arena arena; /* normalized texts */
};

/* A stretch of text that is one added token (id ≥ 0), or text between (XM_NO_TOKEN). */
struct xm_section {
    size_t start, end;
    int32_t id;
};

/* Reads the array "added_tokens" (may be NULL) and adds the tokens to the vocabulary. */
enum xm_status xm_added_tokens_load(yyjson_val *array, struct xm_vocab *vocab,
                                    const struct xm_normalizer *normalizer,
                                    struct xm_added_tokens *out, struct xm_error *err);
/* One that is matched against the raw text; it is in a vocabulary already, whose text it has. When
 * all are there they are put in order. */
enum xm_status xm_added_tokens_add(struct xm_added_tokens *tokens,
                                   const struct xm_added_token *token,
                                   struct xm_error *err);
void xm_added_tokens_sort(struct xm_added_tokens *tokens);
void xm_added_tokens_free(struct xm_added_tokens *tokens);

/* The section of `text` that begins at `from` < text.n. `marks` (NULL: none is set) has a byte for
 * each byte of text; where one is set, no special token is found. */
struct xm_section xm_added_set_next(const struct xm_added_set *set, struct xm_slice text,
                                    const char *marks, size_t from);

#ifdef __cplusplus
}
#endif
#endif
