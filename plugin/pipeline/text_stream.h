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

#include "plugin/pipeline/session.h"
#include "plugin/text/answer.h"
#include "plugin/text/detokenizer.h"
#include "plugin/text/stop_strings.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_text_stream {
    struct xm_detokenizer detokenizer;
    struct xm_stop_strings *stops; /* owned */
    struct xm_answer *answer;      /* the caller's, begun; NULL: all is text           */
    struct xm_generation_clock *clock; /* the caller's; NULL: nobody asks              */
    struct xm_strbuf raw; /* detokenized, not looked at yet                   */
    /* What the last call made certain; a thought comes before a text. */
    struct xm_strbuf thought, text;
    bool stopped; /* by a stop string, or the answer is complete: the rest is nobody's */
};

/* Whose special tokens, stop strings and clock are meant. */
enum xm_status xm_text_stream_begin(struct xm_text_stream *s,
                                    const struct xm_tokenizer *tokenizer,
                                    const struct xm_generation *asked,
                                    struct xm_error *err);
/* Of a text without an answer, from which two go on. What the last call made certain is not in the
 * copy. After a failure there is nothing to free. */
enum xm_status xm_text_stream_copy(const struct xm_text_stream *s,
                                   struct xm_text_stream *out, struct xm_error *err);
enum xm_status xm_text_stream_push(struct xm_text_stream *s, int32_t id,
                                   struct xm_error *err);
/* There are no more tokens: what is held back comes. */
enum xm_status xm_text_stream_finish(struct xm_text_stream *s, struct xm_error *err);
void xm_text_stream_free(struct xm_text_stream *s);

#ifdef __cplusplus
}
#endif
#endif
