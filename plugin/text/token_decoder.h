/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoder: the stage of a tokenizer that turns token texts back into text, one token at a time.
 *
 * It is a chain of steps ("decoder" in tokenizer.json). Each step takes texts and passes texts on;
 * text that a step cannot pass on yet stays in the caller's state. A list of tokens is decoded by
 * pushing them one by one and flushing, so both ways give the same text.
 *
 * A step sees the texts of single tokens, until a step that joins them (Fuse, ByteLevel). The steps
 * behind that see one text in arbitrary parts. Steps that would have to look across these parts
 * (Replace, ByteFallback, Metaspace behind Fuse) are refused when loading.
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
    struct xm_regex *regex; /* owned; of Replace                            */
    char *
        content; /* owned; of Replace a text, of WordPiece a prefix, of others one character */
    size_t content_bytes;
    uint32_t strip_left, strip_right; /* of Strip: most characters removed     */
    bool drop_first;                  /* of Metaspace: the first token loses its space */
    bool cleanup;                     /* of WordPiece: no space before signs           */
    bool fused;                       /* a step before it joins the tokens     */
};

/* Zero-initialised, present is false: token texts are joined with spaces. */
struct xm_token_decoder {
    struct xm_token_decoder_step steps[XM_MAX_TOKEN_DECODERS];
    size_t n;
    bool present;
};

/* The state of one text; zero-initialise to use. */
struct xm_token_decoder_state {
    struct {
        struct xm_strbuf held; /* an incomplete character, or text that may be stripped */
        uint64_t seen;     /* texts taken; of Strip, characters stripped on the left */
        uint64_t trailing; /* characters held that may have to be stripped       */
        bool inside;       /* text that is not stripped has been passed on       */
    } steps[XM_MAX_TOKEN_DECODERS];
    uint64_t n_tokens;
};

/* Reads the "decoder" object; `value` may be NULL or JSON null. On failure `out` still has to be
 * freed. */
enum xm_status xm_token_decoder_load(yyjson_val *value, struct xm_token_decoder *out,
                                     struct xm_error *err);
void xm_token_decoder_free(struct xm_token_decoder *decoder);

/* Takes the next token's text and appends the text that is decided by it; flush ends the text and
 * appends what is held. */
enum xm_status xm_token_decoder_push(const struct xm_token_decoder *decoder,
                                     struct xm_token_decoder_state *state,
                                     struct xm_slice token, struct xm_strbuf *out,
                                     struct xm_error *err);
enum xm_status xm_token_decoder_flush(const struct xm_token_decoder *decoder,
                                      struct xm_token_decoder_state *state,
                                      struct xm_strbuf *out, struct xm_error *err);
/* Appends the bytes that a token appends to a text of other tokens before it, or with `first` to an
 * empty one; of parts of characters, too. XM_UNSUPPORTED: tokens behind it matter. */
enum xm_status xm_token_decoder_bytes(const struct xm_token_decoder *decoder,
                                      struct xm_slice token, bool first,
                                      struct xm_strbuf *out, struct xm_error *err);
/* Whether some tokens append other bytes to an empty text. */
bool xm_token_decoder_differs_at_start(const struct xm_token_decoder *decoder);

void xm_token_decoder_state_free(struct xm_token_decoder_state *state);
/* An independent copy. False: no memory; `out` still has to be freed. */
bool xm_token_decoder_state_copy(const struct xm_token_decoder_state *state,
                                 struct xm_token_decoder_state *out);

#ifdef __cplusplus
}
#endif
#endif
