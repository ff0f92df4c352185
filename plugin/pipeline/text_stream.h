/* SPDX-License-Identifier: Apache-2.0
 *
 * Generated tokens as text that can be shown at once.
 *
 *     id ──► detokenizer ──► parts of an answer ──► stop strings ──► text
 *            whole            thoughts apart
 *            characters              └───────────────────────────► thought
 */
#ifndef XM_PLUGIN_PIPELINE_TEXT_STREAM_H
#define XM_PLUGIN_PIPELINE_TEXT_STREAM_H

#include "plugin/pipeline/generation.h"
#include "plugin/text/detokenizer.h"
#include "plugin/text/stop_strings.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_text_stream {
    struct xm_detokenizer detokenizer;
    struct xm_stop_strings *stops; /* owned */
    struct xm_answer *answer;      /* the caller's, begun; NULL: all is text           */
    struct xm_generation_clock *clock; /* the caller's; NULL: not measured             */
    struct xm_strbuf raw; /* detokenized, not yet processed                   */
    /* Output that the last call made certain; the thought precedes the text. */
    struct xm_strbuf thought, text;
    struct xm_strbuf
        call; /* of a tool, behind them, as JSON: the last one of answer->calls */
    /* by a stop string, or the answer is complete: later tokens are dropped */
    bool stopped;
    size_t stop; /* which stop string it was, from 1; 0: none */
};

/* Takes the handling of special tokens, the stop strings and the clock from `asked`. */
enum xm_status xm_text_stream_begin(struct xm_text_stream *s,
                                    const struct xm_tokenizer *tokenizer,
                                    const struct xm_generation *asked,
                                    struct xm_error *err);
/* Copies the state, so that two texts can continue from it. Only for streams without an answer. The
 * copy does not have the output of the last call. After a failure there is nothing to free. */
enum xm_status xm_text_stream_copy(const struct xm_text_stream *s,
                                   struct xm_text_stream *out, struct xm_error *err);
enum xm_status xm_text_stream_push(struct xm_text_stream *s, int32_t id,
                                   struct xm_error *err);
/* Call after the last token: outputs the text that was held back. */
enum xm_status xm_text_stream_finish(struct xm_text_stream *s, struct xm_error *err);
void xm_text_stream_free(struct xm_text_stream *s);

#ifdef __cplusplus
}
#endif
#endif
