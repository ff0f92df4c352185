/* SPDX-License-Identifier: Apache-2.0
 *
 * The vocabulary: token id <-> text.
 *
 * Ids may have holes (a model's table is often padded). Added tokens live in the same
 * table, marked: the model's merges never produce one that the model itself lacks.
 */
#ifndef XM_PLUGIN_TEXT_VOCAB_H
#define XM_PLUGIN_TEXT_VOCAB_H

#include "runtime/util/slice.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_NO_TOKEN = -1 };

struct xm_vocab_entry {
    struct xm_slice text; /* text.text is NULL: no token has this id */
    bool in_model;        /* part of the model's own vocabulary      */
    bool special;         /* left out of text shown to people        */
};

/* Zero-initialise to use. */
struct xm_vocab {
    struct xm_arena arena; /* texts */
    struct xm_vocab_entry *entries;
    size_t n; /* largest id + 1 */
    size_t capacity;
    int32_t *slots;  /* open-addressed hash table of ids; XM_NO_TOKEN: free */
    size_t n_slots;  /* a power of two */
    size_t n_tokens; /* entries with a text */
};

/* Makes room for `n_tokens` more tokens. */
enum xm_status xm_vocab_reserve(struct xm_vocab *vocab, size_t n_tokens,
                                struct xm_error *err);

/* Copies `text`. Id and text must both be new. */
enum xm_status xm_vocab_add(struct xm_vocab *vocab, struct xm_slice text, int32_t id,
                            bool in_model, struct xm_error *err);

/* Which of several tokens with equal texts xm_vocab_find returns. */
enum xm_vocab_repeat { XM_REPEAT_FINDS_FIRST, XM_REPEAT_FINDS_LAST };

/* The same for a token of the model whose text may be another token's: each id keeps its text. */
enum xm_status xm_vocab_add_repeatable(struct xm_vocab *vocab, struct xm_slice text,
                                       int32_t id, enum xm_vocab_repeat repeat,
                                       struct xm_error *err);

/* XM_NO_TOKEN: there is no such token. The second looks at the model's own only. */
int32_t xm_vocab_find(const struct xm_vocab *vocab, struct xm_slice text);
int32_t xm_vocab_find_in_model(const struct xm_vocab *vocab, struct xm_slice text);
/* The model's own without special tokens: those are found as added tokens, or are text. */
int32_t xm_vocab_find_ordinary(const struct xm_vocab *vocab, struct xm_slice text);

/* NULL: no token has this id. */
const struct xm_vocab_entry *xm_vocab_get(const struct xm_vocab *vocab, int32_t id);

/* Ids of the model's <0x00> .. <0xFF>, XM_NO_TOKEN where it has none. */
void xm_vocab_find_bytes(const struct xm_vocab *vocab, int32_t ids[256]);

void xm_vocab_free(struct xm_vocab *vocab);

#ifdef __cplusplus
}
#endif
#endif
