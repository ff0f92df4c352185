/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/text_stream.h"

#include <assert.h>

enum xm_status
xm_text_stream_begin(struct xm_text_stream *s, const struct xm_tokenizer *tokenizer,
                     const struct xm_generation *asked, struct xm_error *err)
{
    *s = (struct xm_text_stream){.clock = asked->clock};
    xm_detokenizer_init(&s->detokenizer, tokenizer, !asked->keep_special);
    XM_TRY(xm_stop_strings_create(asked->stops, asked->n_stops, &s->stops, err));
    if (asked->keep_stop)
        xm_stop_strings_keep_found(s->stops);
    else if (asked->drop_blanks)
        xm_stop_strings_drop_blanks(s->stops);
    return XM_OK;
}

enum xm_status
xm_text_stream_copy(const struct xm_text_stream *s, struct xm_text_stream *out,
                    struct xm_error *err)
{
    assert(!s->answer && s->raw.n == 0);
    *out = (struct xm_text_stream){.detokenizer = s->detokenizer,
                                   .clock = s->clock,
                                   .stopped = s->stopped,
                                   .stop = s->stop};
    bool ok = xm_token_decoder_state_copy(&s->detokenizer.state, &out->detokenizer.state);
    ok = ok && (out->stops = xm_stop_strings_copy(s->stops));
    if (ok)
        return XM_OK;
    xm_text_stream_free(out);
    return xm_no_memory(err, "the text");
}

void
xm_text_stream_free(struct xm_text_stream *s)
{
    xm_detokenizer_free(&s->detokenizer);
    xm_stop_strings_free(s->stops);
    xm_strbuf_free(&s->raw);
    xm_strbuf_free(&s->thought);
    xm_strbuf_free(&s->text);
    xm_strbuf_free(&s->call);
    *s = (struct xm_text_stream){0};
}

/* Moves thoughts and tool calls out of s->raw, so that it holds only text. */
static void
take_out_thoughts(struct xm_text_stream *s, bool last)
{
    struct xm_strbuf shown = {0};
    enum xm_answer_part part =
        xm_answer_text(s->answer, xm_strbuf_text(&s->raw), s->raw.n, &shown);
    if (last && part == XM_ANSWER_NOTHING)
        part = xm_answer_end(s->answer, &shown);
    xm_strbuf_clear(&s->raw);
    if (part == XM_ANSWER_THOUGHT)
        xm_strbuf_add_n(&s->thought, xm_strbuf_text(&shown), shown.n);
    if (part == XM_ANSWER_TEXT)
        xm_strbuf_add_n(&s->raw, xm_strbuf_text(&shown), shown.n);
    if (part == XM_ANSWER_CALL)
        xm_strbuf_add_n(&s->call, xm_strbuf_text(&shown), shown.n);
    s->raw.failed |= shown.failed;
    xm_strbuf_free(&shown);
}

/* Passes text to the stop strings; s->text gets what comes before a stop string. */
static enum xm_status
push(struct xm_text_stream *s, const struct xm_strbuf *text, struct xm_error *err)
{
    bool found = false;
    XM_TRY(xm_stop_strings_push(s->stops, xm_strbuf_text(text), text->n, &s->text, &found,
                                err));
    s->stopped |= found;
    s->stop = found ? xm_stop_strings_found(s->stops) : s->stop;
    return XM_OK;
}

/* Processes s->raw: separates the parts of an answer and searches for stop strings. `last`: also
 * outputs what was held back. */
static enum xm_status
pass_on(struct xm_text_stream *s, bool last, struct xm_error *err)
{
    if (s->answer)
        take_out_thoughts(s, last);
    if (!xm_strbuf_ok(&s->raw) || !xm_strbuf_ok(&s->thought) || !xm_strbuf_ok(&s->call))
        return xm_no_memory(err, "the text");
    XM_TRY(push(s, &s->raw, err));
    xm_strbuf_clear(&s->raw);
    return last ? xm_stop_strings_flush(s->stops, &s->text, err) : XM_OK;
}

/* Detokenizes a token, or, for -1, outputs what the detokenizer holds back. */
static enum xm_status
detokenize(struct xm_text_stream *s, int32_t id, struct xm_error *err)
{
    const double start = xm_clock_start(s->clock);
    const enum xm_status status =
        id < 0 ? xm_detokenizer_flush(&s->detokenizer, &s->raw, err)
               : xm_detokenizer_push(&s->detokenizer, id, &s->raw, err);
    if (s->clock)
        xm_clock_add(s->clock, &s->clock->detokenise_s, start);
    return status;
}

/* Takes the part that a mark has completed. Before a tool call, text that was held back as a
 * possible start of a stop string is output. */
static enum xm_status
take_part(struct xm_text_stream *s, enum xm_answer_part part, const struct xm_strbuf *out,
          struct xm_error *err)
{
    if (!xm_strbuf_ok(out))
        return xm_no_memory(err, "the text");
    if (part == XM_ANSWER_TEXT)
        return push(s, out, err);
    if (part != XM_ANSWER_CALL)
        return XM_OK;
    xm_strbuf_add_n(&s->call, xm_strbuf_text(out), out->n);
    return xm_strbuf_ok(&s->call) ? xm_stop_strings_flush(s->stops, &s->text, err)
                                  : xm_no_memory(err, "the text");
}

/* Takes a mark of an answer. Text that the detokenizer holds back belongs to the part before the
 * mark. */
static enum xm_status
take_mark(struct xm_text_stream *s, int32_t id, struct xm_error *err)
{
    XM_TRY(detokenize(s, -1, err));
    XM_TRY(pass_on(s, false, err));
    if (s->stopped)
        return XM_OK;
    struct xm_strbuf out = {0};
    const enum xm_answer_part part = xm_answer_take(s->answer, id, &out);
    const enum xm_status status = take_part(s, part, &out, err);
    s->stopped |= s->answer->complete;
    xm_strbuf_free(&out);
    return status;
}

static void
clear(struct xm_text_stream *s)
{
    xm_strbuf_clear(&s->thought);
    xm_strbuf_clear(&s->text);
    xm_strbuf_clear(&s->call);
}

enum xm_status
xm_text_stream_push(struct xm_text_stream *s, int32_t id, struct xm_error *err)
{
    clear(s);
    if (s->answer && xm_answer_is_mark(s->answer, id))
        return take_mark(s, id, err);
    XM_TRY(detokenize(s, id, err));
    return pass_on(s, false, err);
}

enum xm_status
xm_text_stream_finish(struct xm_text_stream *s, struct xm_error *err)
{
    clear(s);
    if (!s->stopped)
        XM_TRY(detokenize(s, -1, err));
    return pass_on(s, true, err);
}
