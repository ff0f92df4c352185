/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to plugin/text/gguf. The files of this folder share the work of reading a tokenizer:
 *
 *     gguf_special.c         ids of special tokens
 *     gguf_pre_tokenizers.c  the pre-tokenizers that tokenizer.ggml.pre names
 *     gguf_vocab.c           tokens, their types, merges and scores
 *     gguf_unigram.c         pieces with scores, and the charsmap
 *     gguf_tokenizer.c       the tokenizer made of all these
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
/* XM_INVALID: the file lacks the key; the error message says that its tokenizer needs it. */
enum xm_status xm_gguf_need(const struct xm_gguf *g, const char *key,
                            struct xm_error *err);
/* Reads a boolean; without the key *out keeps its value. */
enum xm_status xm_gguf_bool_or(const struct xm_gguf *g, const char *key, bool *out,
                               struct xm_error *err);

/* ---- ids ----------------------------------------------------------------------------- */

/* Returns whether `model`, the value of tokenizer.ggml.model, means "no tokenizer": the model is
 * used with ids. */
bool xm_gguf_is_no_tokenizer(struct xm_slice model);

/* Ids of special tokens; -1: the file has no such key. Other values are valid indices of the file's
 * token list, if it has one. */
struct xm_gguf_special {
    int32_t bos, eos, unk, pad;
    int32_t eot, eom; /* end of turn, end of message          */
    int32_t cls, sep; /* put before and behind a text by BERT */
};

enum xm_status xm_gguf_find_special(const struct xm_gguf *g, struct xm_gguf_special *out,
                                    struct xm_error *err);
/* Reads the key tokenizer.ggml.tokens. XM_INVALID: it is missing, not a list of texts, empty, or
 * longer than XM_MAX_TOKENS. */
enum xm_status xm_gguf_tokens(const struct xm_gguf *g, struct xm_gguf_values *out,
                              struct xm_error *err);

/* ---- pre-tokenizers ------------------------------------------------------------------ */

/* Flags of a pre-tokenizer. */
enum {
    /* a word that is a token becomes it without merging */
    XM_GGUF_WHOLE_WORDS = 1 << 0,
    /* bos is put before each text, unless the key tokenizer.ggml.add_bos_token is false */
    XM_GGUF_BEGINS = 1 << 1,
    /* U+0020 becomes U+2581; without this flag bytes are written as printable characters */
    XM_GGUF_MARKS_SPACES = 1 << 2,
    /* bos is put before each text, whatever tokenizer.ggml.add_bos_token says */
    XM_GGUF_ALWAYS_BEGINS = 1 << 3,
    /* a run of newlines that is a token becomes it without merging */
    XM_GGUF_WHOLE_NEWLINES = 1 << 4,
    /* white space separates words and is dropped; characters are not replaced */
    XM_GGUF_DROPS_SPACES = 1 << 5
};

struct xm_gguf_pre_tokenizer {
    const char *const *names; /* ended by a NULL */
    /* Ended by a NULL; each pattern cuts the pieces that those before it made. NULL: cut at white
     * space. */
    const char *const *patterns;
    unsigned flags;
};

/* Finds the row with this name. XM_UNSUPPORTED: there is none; the error message lists the known
 * names. */
enum xm_status xm_gguf_find_pre_tokenizer(struct xm_slice name,
                                          const struct xm_gguf_pre_tokenizer **out,
                                          struct xm_error *err);

/* ---- the model ----------------------------------------------------------------------- */

/* Fills t's vocabulary and added tokens. own_are_special: tokens of the type "user defined" count
 * as special tokens, too, like control tokens. */
enum xm_status xm_gguf_load_vocab(const struct xm_gguf *g, bool own_are_special,
                                  struct xm_tokenizer *t, struct xm_error *err);
/* Fill bpe's merges from tokenizer.ggml.merges, or bpe's ranks from tokenizer.ggml.scores. */
enum xm_status xm_gguf_load_merges(const struct xm_gguf *g, struct xm_bpe *bpe,
                                   struct xm_error *err);
enum xm_status xm_gguf_load_scores(const struct xm_gguf *g, struct xm_bpe *bpe,
                                   struct xm_error *err);
/* Fills t's Unigram model from tokens and scores; `unk` as in struct xm_unigram. */
enum xm_status xm_gguf_load_unigram(const struct xm_gguf *g, int32_t unk,
                                    struct xm_tokenizer *t, struct xm_error *err);
/* Appends tokenizer.ggml.precompiled_charsmap to t's normalizer. Without the key it does
 * nothing. */
enum xm_status xm_gguf_load_charsmap(const struct xm_gguf *g, struct xm_tokenizer *t,
                                     struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
