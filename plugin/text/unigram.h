/* SPDX-License-Identifier: Apache-2.0
 *
 * Unigram: of all ways to cut a word into pieces the one with the largest sum of scores.
 *
 *     best(0) = 0,   best(end) = max over pieces word[start..end) of best(start) + score
 *
 * A character that is no piece costs more than every piece. Such characters in a row are
 * one token, or byte tokens where the model has them.
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
    struct xm_slice text; /* in the vocabulary */
    double score;
    int32_t id;
};

struct xm_unigram {
    const struct xm_vocab *vocab;    /* not owned                                    */
    struct xm_unigram_piece *pieces; /* owned; in order of their bytes               */
    size_t n;                        /* 0: the tokenizer has another kind of model   */
    double unk_score;                /* of a character that is no piece              */
    int32_t unk;                     /* XM_NO_TOKEN: an unknown character is an error */
    bool byte_fallback;              /* unknown characters become <0xHH> tokens      */
    int32_t byte_ids[256];           /* of <0xHH>, or XM_NO_TOKEN                    */
};

/* Scratch of an encode call, kept over its words. Zero-initialise to use. */
struct xm_unigram_work {
    struct xm_unigram_end *ends; /* owned */
    size_t capacity;
    struct xm_token_list ids; /* of one word, the last one first */
};

/* Reads the "model" object and fills `vocab`, which must outlive `out`. On failure `out`
 * still has to be freed. */
enum xm_status xm_unigram_load(yyjson_val *model, struct xm_vocab *vocab,
                               struct xm_unigram *out, struct xm_error *err);
/* The same without a file's object: room for n pieces, once; tokens of the vocabulary as pieces;
 * then the unknown token, and whether it has bytes for unknown characters. */
enum xm_status xm_unigram_reserve(struct xm_unigram *unigram,
                                  const struct xm_vocab *vocab, size_t n,
                                  struct xm_error *err);
void xm_unigram_add(struct xm_unigram *unigram, int32_t id, double score);
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
