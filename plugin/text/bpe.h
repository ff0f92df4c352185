/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-pair encoding: a word is cut into characters, then the adjacent pair with the
 * lowest rank is merged until none merges. A pair merges if the table of merges has it; where
 * tokens have ranks instead (SentencePiece's kind), if its text is a token, by that one's rank.
 */
#ifndef XM_PLUGIN_TEXT_BPE_H
#define XM_PLUGIN_TEXT_BPE_H

#include <yyjson.h>

#include "plugin/text/token_list.h"
#include "plugin/text/vocab.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One merge: `left` and `right` become `merged`. */
struct xm_merge {
    int32_t left, right; /* left is XM_NO_TOKEN: a free slot */
    int32_t merged;
    uint32_t rank; /* lower merges first */
};

struct xm_bpe {
    const struct xm_vocab *vocab; /* not owned */
    struct xm_merge *merges;      /* owned; open-addressed hash table by (left, right) */
    size_t n_slots;               /* a power of two, or 0 */
    uint32_t *ranks;              /* owned; of each id, lower first; NULL: by the table */
    int32_t unk;                  /* XM_NO_TOKEN: an unknown character vanishes         */
    bool fuse_unk;                /* unknown characters in a row are one token          */
    bool byte_fallback;           /* unknown characters become <0xHH> tokens            */
    bool ignore_merges;           /* a word that is a token is not merged at all        */
    bool whole_newlines;          /* the same of words that begin with U+000A           */
    int32_t byte_ids[256];        /* of <0xHH>, or XM_NO_TOKEN                          */
    char *prefix, *suffix;        /* owned; of inner characters, of the last one        */
    size_t prefix_bytes, suffix_bytes;
};

/* Scratch of an encode call, kept over its words. Zero-initialise to use. */
struct xm_bpe_work {
    struct xm_slice word;          /* the caller's */
    struct xm_bpe_symbol *symbols; /* owned */
    size_t n_symbols, symbol_capacity;
    struct xm_bpe_candidate *heap; /* owned */
    size_t n_heap, heap_capacity;
    struct xm_strbuf name; /* a character with its prefix and suffix */
};

/* Reads the "model" object and fills `vocab`, which must outlive `out`. On failure `out`
 * still has to be freed. */
enum xm_status xm_bpe_load(yyjson_val *model, struct xm_vocab *vocab, struct xm_bpe *out,
                           struct xm_error *err);
void xm_bpe_free(struct xm_bpe *bpe);

/* Appends the tokens of one word (well-formed UTF-8). O(n log n). */
enum xm_status xm_bpe_encode(const struct xm_bpe *bpe, struct xm_slice word,
                             struct xm_bpe_work *work, struct xm_token_list *out,
                             struct xm_error *err);
void xm_bpe_work_free(struct xm_bpe_work *work);

/* Room for so many merges, once, and one of them; `bpe->vocab` has all tokens, `joined` is
 * scratch. */
enum xm_status xm_bpe_reserve_merges(struct xm_bpe *bpe, size_t n_merges,
                                     struct xm_error *err);
enum xm_status xm_bpe_add_merge(struct xm_bpe *bpe, struct xm_slice left,
                                struct xm_slice right, uint32_t rank,
                                struct xm_strbuf *joined, struct xm_error *err);

/* NULL: the pair is not in the table. */
const struct xm_merge *xm_bpe_find_merge(const struct xm_bpe *bpe, int32_t left,
                                         int32_t right);

#ifdef __cplusplus
}
#endif
#endif
