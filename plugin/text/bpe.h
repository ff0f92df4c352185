/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-pair encoding: a word is cut into characters; then the adjacent pair with the lowest rank is
 * merged, again and again, until no pair can be merged. A pair can be merged if the table of merges
 * has it. If the vocabulary has ranks instead of merges (SentencePiece's BPE), a pair can be merged
 * if its concatenated text is a token, and has that token's rank.
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

/* One merge, by token ids: `left` and `right` become `merged`. */
struct xm_merge {
    int32_t left, right;
    int32_t merged;
    uint32_t rank; /* the pair with the lowest rank is merged first */
};

struct xm_bpe {
    const struct xm_vocab *vocab; /* not owned */
    struct xm_merge *merges;      /* owned */
    size_t n_merges, merge_capacity;
    struct xm_hash_index by_pair; /* indexes `merges` by (left, right) */
    /* owned; the rank of each token id; NULL: `merges` is used */
    uint32_t *ranks;
    /* token for an unknown character; XM_NO_TOKEN: it is dropped */
    int32_t unk;
    bool fuse_unk;         /* consecutive unknown characters are one `unk`         */
    bool byte_fallback;    /* unknown characters become <0xHH> tokens              */
    bool ignore_merges;    /* a word that is a token becomes it without merging    */
    bool whole_newlines;   /* the same only for words that begin with a newline    */
    int32_t byte_ids[256]; /* ids of the <0xHH> tokens; XM_NO_TOKEN: no such token */
    /* Owned: `prefix` is put before each character but the first, `suffix` behind the last; NULL:
     * none. */
    char *prefix, *suffix;
    size_t prefix_bytes, suffix_bytes;
};

/* Scratch memory of one thread, reused for all words of an encode call. Zero-initialise to use. */
struct xm_bpe_work {
    struct xm_slice word;          /* the word to encode, the caller's */
    struct xm_bpe_symbol *symbols; /* owned */
    size_t n_symbols, symbol_capacity;
    struct xm_bpe_candidate *heap; /* owned */
    size_t n_heap, heap_capacity;
    struct xm_strbuf name; /* scratch: a character with its prefix and suffix */
};

/* Reads tokenizer.json's "model" object and fills `vocab`, which must outlive `out`. On failure
 * `out` still has to be freed. */
enum xm_status xm_bpe_load(yyjson_val *model, struct xm_vocab *vocab, struct xm_bpe *out,
                           struct xm_error *err);
void xm_bpe_free(struct xm_bpe *bpe);

/* Appends the tokens of one word (well-formed UTF-8); O(n log n) in its bytes. */
enum xm_status xm_bpe_encode(const struct xm_bpe *bpe, struct xm_slice word,
                             struct xm_bpe_work *work, struct xm_token_list *out,
                             struct xm_error *err);
void xm_bpe_work_free(struct xm_bpe_work *work);

/* Adds a merge; bpe->vocab must have `left`, `right` and their concatenation. Overwrites `joined`,
 * which is scratch memory. */
enum xm_status xm_bpe_add_merge(struct xm_bpe *bpe, struct xm_slice left,
                                struct xm_slice right, uint32_t rank,
                                struct xm_strbuf *joined, struct xm_error *err);

/* Returns the merge of two token ids; NULL: the table has none. */
const struct xm_merge *xm_bpe_find_merge(const struct xm_bpe *bpe, int32_t left,
                                         int32_t right);

#ifdef __cplusplus
}
#endif
#endif
