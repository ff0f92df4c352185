/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoder: texts of tokens back to text, one token at a time.
 *
 * Each step is a small machine that takes texts and passes texts on; the caller's state
 * holds what a step cannot pass on yet. Decoding a whole list of tokens is the same as
 * decoding them one by one and flushing, by construction.
 *
 * A step sees the texts of single tokens until one step (Fuse, ByteLevel) joins them;
 * after that it sees one long text that arrives in parts. Steps that would need to look
 * across those parts (Replace, ByteFallback, Metaspace behind Fuse) are refused when
 * loading.
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
    const struct xm_token_decoder_type
        *type;              /* row of the table in token_decoder.c     */
    struct xm_regex *regex; /* owned; Replace                         */
    char *content;          /* owned; Replace: text, others: 1 character */
    size_t content_bytes;
    uint32_t strip_left, strip_right; /* Strip: characters at most             */
    bool drop_first;                  /* Metaspace: no space in the first token   */
    bool fused;                       /* its input comes in parts of one text  */
};

/* Zero-initialised without `present`: texts are joined with spaces. */
struct xm_token_decoder {
    struct xm_token_decoder_step steps[XM_MAX_TOKEN_DECODERS];
    size_t n;
    bool present;
};

struct xm_token_decoder_state {
    struct {
        struct xm_strbuf held; /* bytes of an unfinished character or run          */
        uint64_t seen;         /* texts, or characters stripped on the left        */
        uint64_t trailing;     /* characters held that may have to be stripped     */
        bool inside;           /* something that is not stripped has been passed on */
    } steps[XM_MAX_TOKEN_DECODERS];
    uint64_t n_tokens;
};

/* `value` may be NULL or null. On failure `out` still has to be freed. */
enum xm_status xm_token_decoder_load(yyjson_val *value, struct xm_token_decoder *out,
                                     struct xm_error *err);
void xm_token_decoder_free(struct xm_token_decoder *decoder);

/* Appends to `out` what the text of the next token makes certain / what is still held. */
enum xm_status xm_token_decoder_push(const struct xm_token_decoder *decoder,
                                     struct xm_token_decoder_state *state,
                                     struct xm_slice token, struct xm_strbuf *out,
                                     struct xm_error *err);
enum xm_status xm_token_decoder_flush(const struct xm_token_decoder *decoder,
                                      struct xm_token_decoder_state *state,
                                      struct xm_strbuf *out, struct xm_error *err);
void xm_token_decoder_state_free(struct xm_token_decoder_state *state);
/* From here on both go their own ways. False: no memory; `out` still has to be freed. */
bool xm_token_decoder_state_copy(const struct xm_token_decoder_state *state,
                                 struct xm_token_decoder_state *out);

#ifdef __cplusplus
}
#endif
#endif
