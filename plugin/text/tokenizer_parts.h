/* SPDX-License-Identifier: Apache-2.0
 *
 * The members of a tokenizer. Private to tokenizer*.c, detokenizer.c, token_trie.c and
 * gguf/gguf_tokenizer.c.
 */
#ifndef XM_PLUGIN_TEXT_TOKENIZER_PARTS_H
#define XM_PLUGIN_TEXT_TOKENIZER_PARTS_H

#include "plugin/text/added_tokens.h"
#include "plugin/text/bpe.h"
#include "plugin/text/normalizer.h"
#include "plugin/text/post_processor.h"
#include "plugin/text/pre_tokenizer.h"
#include "plugin/text/token_decoder.h"
#include "plugin/text/unigram.h"
#include "plugin/text/vocab.h"
#include "plugin/text/wordpiece.h"

struct xm_tokenizer {
    struct xm_vocab vocab;
    struct xm_added_tokens added;
    struct xm_normalizer normalizer;
    struct xm_pre_tokenizer pre;
    struct xm_bpe bpe; /* the model, unless unigram.n > 0 or wordpiece.vocab is set */
    struct xm_unigram unigram;
    struct xm_wordpiece wordpiece;
    struct xm_post_processor post;
    struct xm_token_decoder decoder;
    /* struct xm_token_trie, owned: of tokens inside a text and, if they differ, of tokens at its
     * start. NULL: not made yet (xm_slot_get). */
    void *tries[2];
};

#endif
