/* SPDX-License-Identifier: Apache-2.0
 *
 * Unigram: cuts a word into the pieces whose scores (log-probabilities) have the largest sum.
 *
 *     best(0) = 0,   best(end) = max over pieces word[start..end) of best(start) + score
 *
 * A character that is not a piece has a score below every piece's. Consecutive characters of this
 * kind become one unknown token, or byte tokens where the model has them.
 */
#ifndef XM_PLUGIN_TEXT_UNIGRAM_H
#define XM_PLUGIN_TEXT_UNIGRAM_H

#include <yyjson.h>

#include "plugin/text/token_list.h"
#include "plugin/text/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_unigram_piece {
    struct xm_slice text; /* points into the vocabulary's memory */
    double score;
    int32_t id;
};

struct xm_unigram {
    const struct xm_vocab *vocab;    /* not owned                                   */
    struct xm_unigram_piece *pieces; /* owned; sorted by the bytes of their texts   */
    size_t n;                        /* 0: the tokenizer's model is of another kind */
    double unk_score;                /* score of a character that is not a piece    */
    int32_t unk;           /* unknown token; XM_NO_TOKEN: unknown characters fail  */
    bool byte_fallback;    /* unknown characters become <0xHH> tokens              */
    int32_t byte_ids[256]; /* ids of the <0xHH> tokens; XM_NO_TOKEN: no such token */
};

/* Scratch memory of one thread, reused for all words of an encode call. Zero-initialise to use. */
struct xm_unigram_work {
    struct xm_unigram_end *ends; /* owned */
    size_t capacity;
    struct xm_token_list ids; /* ids of one word, in reverse order */
};

/* Reads tokenizer.json's "model" object and fills `vocab`, which must outlive `out`. On failure
 * `out` still has to be freed. */
enum xm_status xm_unigram_load(yyjson_val *model, struct xm_vocab *vocab,
                               struct xm_unigram *out, struct xm_error *err);
/* For pieces that do not come from tokenizer.json: allocates room for `n` pieces; call it once. */
enum xm_status xm_unigram_reserve(struct xm_unigram *unigram,
                                  const struct xm_vocab *vocab, size_t n,
                                  struct xm_error *err);
/* Adds the vocabulary's token `id` as a piece. At most the reserved number may be added. */
void xm_unigram_add(struct xm_unigram *unigram, int32_t id, double score);
/* Sorts the pieces and sets the unknown token; call it after the last piece. */
void xm_unigram_finish(struct xm_unigram *unigram, int32_t unk, bool byte_fallback);
void xm_unigram_free(struct xm_unigram *unigram);

/* Appends the tokens of one word (well-formed UTF-8). */
enum xm_status xm_unigram_encode(const struct xm_unigram *unigram, struct xm_slice word,
                                 struct xm_unigram_work *work, struct xm_token_list *out,
                                 struct xm_error *err);
void xm_unigram_work_free(struct xm_unigram_work *work);

#ifdef __cplusplus
}
#endif
#endif
