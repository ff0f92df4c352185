/* SPDX-License-Identifier: Apache-2.0
 *
 * WordPiece: a word is cut from its beginning into the longest pieces that there are.
 *
 *     "unaffable" -> un, ##aff, ##able
 *
 * A word of which any part is no piece is one unknown token, as is a word that is too long.
 */
#ifndef XM_PLUGIN_TEXT_WORDPIECE_H
#define XM_PLUGIN_TEXT_WORDPIECE_H

#include "plugin/text/token_list.h"
#include "plugin/text/vocab.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Characters of a word that is cut, at most: that of every published model. */
enum { XM_WORDPIECE_MOST = 100 };

struct xm_wordpiece {
    const struct xm_vocab
        *vocab;  /* not owned; NULL: the tokenizer has another kind of model */
    int32_t unk; /* XM_NO_TOKEN: such a word is an error */
    /* What the texts of pieces begin with that begin a word, and that go on in one; static. */
    const char *first, *inner;
};

/* Appends the tokens of one word (well-formed UTF-8); `scratch` is overwritten. */
enum xm_status xm_wordpiece_encode(const struct xm_wordpiece *model, struct xm_slice word,
                                   struct xm_strbuf *scratch, struct xm_token_list *out,
                                   struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
