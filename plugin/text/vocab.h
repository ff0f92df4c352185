/* SPDX-License-Identifier: Apache-2.0
 *
 * The vocabulary maps token ids to texts and texts to ids.
 *
 * Ids need not be contiguous (a model's vocabulary is often padded). The table has added tokens,
 * too. in_model marks the model's own tokens, because merges produce only those.
 */
#ifndef XM_PLUGIN_TEXT_VOCAB_H
#define XM_PLUGIN_TEXT_VOCAB_H

#include <yyjson.h>

#include "runtime/util/hash_index.h"
#include "runtime/util/slice.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_NO_TOKEN = -1 };

struct xm_vocab_entry {
    struct xm_slice text; /* text.text NULL: no token has this id   */
    bool in_model;        /* part of the model's own vocabulary     */
    bool special;         /* a control token: skip_special drops it */
};

/* Zero-initialise to use. Immutable once the tokenizer is loaded. */
struct xm_vocab {
    struct xm_arena arena;          /* memory of the texts */
    struct xm_vocab_entry *entries; /* owned; indexed by id */
    size_t n;                       /* largest id + 1 */
    size_t capacity;
    struct xm_hash_index by_text; /* indexes `entries` by text */
};

/* Adds a token and copies its text. XM_INVALID: the id or the text is there already. */
enum xm_status xm_vocab_add(struct xm_vocab *vocab, struct xm_slice text, int32_t id,
                            bool in_model, struct xm_error *err);

/* Which of several tokens with equal texts xm_vocab_find returns: the one added first or last. */
enum xm_vocab_repeat { XM_REPEAT_FINDS_FIRST, XM_REPEAT_FINDS_LAST };

/* Adds a token of the model whose text another token may have, too; each id keeps its text. */
enum xm_status xm_vocab_add_repeatable(struct xm_vocab *vocab, struct xm_slice text,
                                       int32_t id, enum xm_vocab_repeat repeat,
                                       struct xm_error *err);

/* Adds the tokens of tokenizer.json's "model" object: its member "vocab", {text: id}. */
enum xm_status xm_vocab_load(yyjson_val *model, struct xm_vocab *vocab,
                             struct xm_error *err);

/* Return the id of a text: among all tokens, or among the model's own. XM_NO_TOKEN: there is
 * none. */
int32_t xm_vocab_find(const struct xm_vocab *vocab, struct xm_slice text);
int32_t xm_vocab_find_in_model(const struct xm_vocab *vocab, struct xm_slice text);
/* Returns the id of a text among the model's own tokens that are not special, because a special
 * token is only recognised as an added token. */
int32_t xm_vocab_find_ordinary(const struct xm_vocab *vocab, struct xm_slice text);

/* Returns the entry of an id; NULL: no token has it. */
const struct xm_vocab_entry *xm_vocab_get(const struct xm_vocab *vocab, int32_t id);

/* Sets ids[] to the model's byte tokens <0x00> to <0xFF>; XM_NO_TOKEN for each that it lacks. */
void xm_vocab_find_bytes(const struct xm_vocab *vocab, int32_t ids[256]);

void xm_vocab_free(struct xm_vocab *vocab);

#ifdef __cplusplus
}
#endif
#endif
