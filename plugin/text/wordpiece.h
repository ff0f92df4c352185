/* SPDX-License-Identifier: Apache-2.0
 *
 * WordPiece cuts a word from left to right, each time taking the longest piece in the vocabulary.
 *
 *     "unaffable" -> un, ##aff, ##able
 *
 * In the vocabulary a prefix marks either the pieces that begin a word or ("##") those that do not.
 * If a part of a word is not a piece, or the word is too long, the whole word becomes one unknown
 * token.
 */
#ifndef XM_PLUGIN_TEXT_WORDPIECE_H
#define XM_PLUGIN_TEXT_WORDPIECE_H

#include <yyjson.h>

#include "plugin/text/token_list.h"
#include "plugin/text/vocab.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest word that is cut, in characters: the default, which all published models have, and the
 * largest limit that a file may set. */
enum { XM_WORDPIECE_DEFAULT = 100, XM_WORDPIECE_MOST = 256 };

struct xm_wordpiece {
    /* not owned; NULL: the tokenizer's model is of another kind */
    const struct xm_vocab *vocab;
    int32_t unk; /* unknown token; XM_NO_TOKEN: unknown words fail */
    /* Prefixes in the vocabulary: of pieces that begin a word, and of the others. Static, or in the
     * vocabulary's arena. */
    struct xm_slice first, inner;
    /* Longest word that is cut, in characters; at most XM_WORDPIECE_MOST. */
    uint32_t most;
};

/* Reads tokenizer.json's "model" object and fills `vocab`, which must outlive `out`. */
enum xm_status xm_wordpiece_load(yyjson_val *model, struct xm_vocab *vocab,
                                 struct xm_wordpiece *out, struct xm_error *err);

/* Appends the tokens of one word (well-formed UTF-8); `scratch` is overwritten. */
enum xm_status xm_wordpiece_encode(const struct xm_wordpiece *model, struct xm_slice word,
                                   struct xm_strbuf *scratch, struct xm_token_list *out,
                                   struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
