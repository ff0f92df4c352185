/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of this folder.
 *
 *     gguf_special.c         which ids have a meaning
 *     gguf_pre_tokenizers.c  what the names of tokenizer.ggml.pre stand for
 *     gguf_vocab.c           tokens, their types, merges and scores
 *     gguf_unigram.c         pieces with scores, and their map of characters
 *     gguf_tokenizer.c       all of it as a tokenizer
 */
#ifndef XM_PLUGIN_TEXT_GGUF_GGUF_PARTS_H
#define XM_PLUGIN_TEXT_GGUF_GGUF_PARTS_H

#include "plugin/text/gguf/gguf_text.h"
#include "plugin/text/tokenizer_parts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys ---------------------------------------------------------------------------- */

bool xm_gguf_has(const struct xm_gguf *g, const char *key);
/* XM_INVALID: there is no such key, which the tokenizer that the file has cannot do without. */
enum xm_status xm_gguf_need(const struct xm_gguf *g, const char *key,
                            struct xm_error *err);
/* *out stays as it is where there is no such key. */
enum xm_status xm_gguf_bool_or(const struct xm_gguf *g, const char *key, bool *out,
                               struct xm_error *err);

/* ---- ids ----------------------------------------------------------------------------- */

/* Whether a value of tokenizer.ggml.model says that the file has no tokenizer, but ids only. */
bool xm_gguf_is_no_tokenizer(struct xm_slice model);

/* -1: there is none. All others are ids of the list of tokens, where the file has one. */
struct xm_gguf_special {
    int32_t bos, eos, unk, pad;
    int32_t eot, eom; /* of a turn, of a message */
    int32_t cls, sep; /* around a text, of BERT's kind */
};

enum xm_status xm_gguf_find_special(const struct xm_gguf *g, struct xm_gguf_special *out,
                                    struct xm_error *err);
/* The list of tokens: texts, not too many. */
enum xm_status xm_gguf_tokens(const struct xm_gguf *g, struct xm_gguf_values *out,
                              struct xm_error *err);

/* ---- ways to cut texts into words ---------------------------------------------------- */

enum {
    /* a word that is a token is one, whatever the merges */
    XM_GGUF_WHOLE_WORDS = 1 << 0,
    /* bos stands before each text, unless a key says no */
    XM_GGUF_BEGINS = 1 << 1,
    /* U+0020 is U+2581; else bytes are written as characters */
    XM_GGUF_MARKS_SPACES = 1 << 2,
    /* bos stands before each text, whatever the key says */
    XM_GGUF_ALWAYS_BEGINS = 1 << 3,
    /* newlines that are a token are one, whatever the merges */
    XM_GGUF_WHOLE_NEWLINES = 1 << 4,
    /* white space ends words and is no part of them; characters stay characters */
    XM_GGUF_DROPS_SPACES = 1 << 5
};

struct xm_gguf_pre_tokenizer {
    const char *const *names; /* up to a NULL */
    const char *const
        *patterns; /* up to a NULL: each cuts what those before have left; NULL:
                                    the text is cut at white space */
    unsigned flags;
};

/* XM_UNSUPPORTED: no way has this name; the sentence has those that there are. */
enum xm_status xm_gguf_find_pre_tokenizer(struct xm_slice name,
                                          const struct xm_gguf_pre_tokenizer **out,
                                          struct xm_error *err);

/* ---- the model ----------------------------------------------------------------------- */

/* Fills the vocabulary and the added tokens; `own_are_special`: "user defined" ones too. */
enum xm_status xm_gguf_load_vocab(const struct xm_gguf *g, bool own_are_special,
                                  struct xm_tokenizer *t, struct xm_error *err);
/* What merges: a table, or each token by its score. */
enum xm_status xm_gguf_load_merges(const struct xm_gguf *g, struct xm_bpe *bpe,
                                   struct xm_error *err);
enum xm_status xm_gguf_load_scores(const struct xm_gguf *g, struct xm_bpe *bpe,
                                   struct xm_error *err);
/* Pieces with their scores, where the best cut of the whole text is taken. */
enum xm_status xm_gguf_load_unigram(const struct xm_gguf *g, int32_t unk,
                                    struct xm_tokenizer *t, struct xm_error *err);
/* What tokenizer.ggml.precompiled_charsmap makes of characters, as the first step of the
 * normalizer; nothing where there is no such key. */
enum xm_status xm_gguf_load_charsmap(const struct xm_gguf *g, struct xm_tokenizer *t,
                                     struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
