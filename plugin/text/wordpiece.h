/* SPDX-License-Identifier: Apache-2.0
 *
 * WordPiece: cuts a word from left to right, each time into the longest piece of the vocabulary.
 *
 *     "unaffable" -> un, ##aff, ##able
 *
 * The vocabulary marks the pieces that begin a word, or the others ("##"), with a prefix. If some
 * part of a word is not a piece, or the word is too long, the whole word is one unknown token.
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

/* Longest word that is cut, in characters: the limit that all published models have, and the
 * largest one that a file may ask for. */
enum { XM_WORDPIECE_DEFAULT = 100, XM_WORDPIECE_MOST = 256 };

struct xm_wordpiece {
    /* not owned; NULL: the tokenizer has another kind of model */
    const struct xm_vocab *vocab;
    int32_t unk; /* the unknown token; XM_NO_TOKEN: such a word fails */
    /* prefixes of the vocabulary's texts: of pieces that begin a word, and of the others; static or
     * in the vocabulary's arena */
    struct xm_slice first, inner;
    uint32_t
        most; /* characters of the longest word that is cut; at most XM_WORDPIECE_MOST */
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
