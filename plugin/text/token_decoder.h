/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoder: the stage of a tokenizer that turns token texts back into text, one token at a time.
 *
 * It is a chain of steps ("decoder" in tokenizer.json). Each step takes texts and passes texts on;
 * text that a step cannot pass on yet stays in the caller's state. A list of tokens is decoded by
 * pushing them one by one and flushing, so decoding at once and token by token give the same text.
 *
 * Up to a step that joins tokens (Fuse, ByteLevel), each step gets the texts of single tokens.
 * Later steps get one text in arbitrary parts. Steps that would have to look across these parts
 * (Replace, ByteFallback, or Metaspace behind Fuse) are refused when loading.
 */
#ifndef XM_PLUGIN_TEXT_TOKEN_DECODER_H
#define XM_PLUGIN_TEXT_TOKEN_DECODER_H

#include <yyjson.h>

#include "plugin/text/regex.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MAX_TOKEN_DECODERS = 8 };

struct xm_token_decoder_step {
    /* row of the table in token_decoder.c */
    const struct xm_token_decoder_type *type;
    struct xm_regex *regex; /* owned; only of Replace */
    /* Owned; of Replace the replacement, of WordPiece the prefix, of other steps one character. */
    char *content;
    size_t content_bytes;
    uint32_t strip_left, strip_right; /* only of Strip: most characters to remove */
    /* only of Metaspace: drop the first token's space */
    bool drop_first;
    /* only of WordPiece: drop spaces before punctuation */
    bool cleanup;
    bool fused; /* an earlier step joins the tokens */
};

/* Zero-initialised (`present` is false), it joins token texts with spaces. */
struct xm_token_decoder {
    struct xm_token_decoder_step steps[XM_MAX_TOKEN_DECODERS];
    size_t n;
    bool present;
};

/* The state of one text; zero-initialise to use. */
struct xm_token_decoder_state {
    struct {
        struct xm_strbuf held; /* incomplete character, or text that may be stripped */
        uint64_t seen;     /* texts taken; of Strip: characters stripped on the left */
        uint64_t trailing; /* held characters that may be stripped at the end */
        bool inside;       /* some text has been passed on */
    } steps[XM_MAX_TOKEN_DECODERS];
    uint64_t n_tokens;
};

/* Reads the "decoder" object; `value` may be NULL or JSON null. On failure `out` still has to be
 * freed. */
enum xm_status xm_token_decoder_load(yyjson_val *value, struct xm_token_decoder *out,
                                     struct xm_error *err);
void xm_token_decoder_free(struct xm_token_decoder *decoder);

/* xm_token_decoder_push takes the next token's text and appends the text that is now final;
 * xm_token_decoder_flush ends the text and appends the text that was held back. */
enum xm_status xm_token_decoder_push(const struct xm_token_decoder *decoder,
                                     struct xm_token_decoder_state *state,
                                     struct xm_slice token, struct xm_strbuf *out,
                                     struct xm_error *err);
enum xm_status xm_token_decoder_flush(const struct xm_token_decoder *decoder,
                                      struct xm_token_decoder_state *state,
                                      struct xm_strbuf *out, struct xm_error *err);
/* Appends the bytes that the token adds to a text of other tokens or, with `first`, to an empty
 * text. They may be parts of characters. XM_UNSUPPORTED: the bytes depend on the tokens behind
 * it. */
enum xm_status xm_token_decoder_bytes(const struct xm_token_decoder *decoder,
                                      struct xm_slice token, bool first,
                                      struct xm_strbuf *out, struct xm_error *err);
/* Returns whether some tokens add other bytes to an empty text than to other texts. */
bool xm_token_decoder_differs_at_start(const struct xm_token_decoder *decoder);

void xm_token_decoder_state_free(struct xm_token_decoder_state *state);
/* Makes an independent copy. False: no memory; `out` still has to be freed. */
bool xm_token_decoder_state_copy(const struct xm_token_decoder_state *state,
                                 struct xm_token_decoder_state *out);

#ifdef __cplusplus
}
#endif
#endif
