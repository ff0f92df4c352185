/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts generated tokens into text that can be shown immediately.
 *
 *     id ──► detokenizer ──► parts of an answer ──► stop strings ──► text
 *            whole            thoughts separated
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
    /* owned by the caller, already begun; NULL: everything is text */
    struct xm_answer *answer;
    struct xm_generation_clock *clock; /* owned by the caller; NULL: not measured */
    struct xm_strbuf raw; /* detokenized, not yet processed                   */
    /* Output of the last call, which can no longer change. The thought precedes the text. */
    struct xm_strbuf thought, text;
    /* JSON of a tool call after them: the last one of answer->calls */
    struct xm_strbuf call;
    /* a stop string was found, or the answer is complete: later tokens are dropped */
    bool stopped;
    size_t stop; /* number, from 1, of that stop string; 0: none */
};

/* Begins a stream with the handling of special tokens, the stop strings and the clock of
 * `asked`. */
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
