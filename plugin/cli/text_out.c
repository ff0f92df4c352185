/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "plugin/cli/progress.h"
#include "plugin/cli/terminal.h"
#include "plugin/text/utf8.h"
#include "runtime/util/clock.h"

/* Select graphic rendition: faint, and neither bold nor faint (ECMA-48). */
#define DIM    "\033[2m"
#define NORMAL "\033[22m"

/* clang-format off */
#define AT(member) offsetof(struct xm_cli_generation, member)
const struct xm_cli_option xm_cli_generation_options[XM_CLI_N_GENERATION_OPTIONS] = {
    XM_CLI_TARGET_ROWS,
    { 0, "temp",              XM_CLI_REAL,  AT(temperature),        "T",    "temperature; 0 (default) takes the likeliest token" },
    { 0, "top-k",             XM_CLI_WHOLE, AT(top_k),              "K",    "choose among the K likeliest tokens (0: among all)" },
    { 0, "top-p",             XM_CLI_REAL,  AT(top_p),              "P",    "choose among the likeliest tokens that reach probability P" },
    { 0, "min-p",             XM_CLI_REAL,  AT(min_p),              "P",    "leave out tokens below P times the likeliest one's probability" },
    { 0, "seed",              XM_CLI_WHOLE, AT(seed),               "S",    "of the random numbers; default: another one each time" },
    { 0, "repeat-penalty",    XM_CLI_REAL,  AT(repetition_penalty), "R",    "divide the logits of tokens that have occurred (1: off)" },
    { 0, "presence-penalty",  XM_CLI_REAL,  AT(presence_penalty),   "P",    "take P from the logits of tokens that have occurred" },
    { 0, "frequency-penalty", XM_CLI_REAL,  AT(frequency_penalty),  "F",    "take F for each time a token has occurred" },
    { 0, "repeat-last-n",     XM_CLI_COUNT, AT(last_n),             "N",    "penalties look at the last N tokens (all)" },
    { 'c', "context",         XM_CLI_COUNT, AT(context),            "N",    "at most N tokens of prompt and answers together" },
    { 0, "stop",              XM_CLI_TEXTS, AT(stops),              "TEXT", "end before this text; may be given several times" },
};
#undef AT
/* clang-format on */

/* Short enough to be typed again. Not for secrets. */
static uint64_t
random_seed(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = (uint32_t)(1e6 * xm_now()) ^ (uint32_t)getpid();
    return seed;
}

static int
clamp_int(uint64_t n)
{
    return n < INT32_MAX ? (int)n : 0;
}

int
xm_cli_sampling(const struct xm_cli_generation *a, struct xm_sampling *out)
{
    if (a->top_p > 1.0f)
        return xm_cli_usage("option --top-p takes a number from 0 up to 1, found %g",
                            a->top_p);
    if (a->min_p > 1.0f)
        return xm_cli_usage("option --min-p takes a number from 0 up to 1, found %g",
                            a->min_p);
    for (size_t i = 0; i < a->stops.n; i++) {
        if (a->stops.list[i][0] == '\0')
            return xm_cli_usage("option --stop takes a text, found an empty one");
    }
    if (xm_cli_check_context(a->context) != XM_EXIT_OK)
        return XM_EXIT_USAGE;
    *out = (struct xm_sampling){.temperature = a->temperature,
                                .top_k = clamp_int(a->top_k),
                                .top_p = a->top_p,
                                .seed = a->seed == XM_CLI_RANDOM_SEED ? random_seed()
                                                                      : a->seed,
                                .min_p = a->min_p,
                                .repetition_penalty = a->repetition_penalty,
                                .presence_penalty = a->presence_penalty,
                                .frequency_penalty = a->frequency_penalty,
                                .last_n = clamp_int(a->last_n)};
    return XM_EXIT_OK;
}

enum xm_status
xm_text_out_begin(struct xm_text_out *o, const struct xm_tokenizer *tokenizer,
                  const struct xm_cli_texts *stops, bool stream, bool keep,
                  bool skip_special, struct xm_error *err)
{
    struct xm_slice slices[XM_CLI_MAX_TEXTS];
    *o = (struct xm_text_out){
        .has_text = tokenizer != NULL, .stream = stream, .keep = keep};
    o->on_terminal = xm_terminal_is(STDOUT_FILENO);
    o->styles = xm_terminal_has_styles(STDOUT_FILENO);
    for (size_t i = 0; i < stops->n; i++)
        slices[i] = (struct xm_slice){stops->list[i], strlen(stops->list[i])};
    if (tokenizer)
        xm_detokenizer_init(&o->detokenizer, tokenizer, skip_special);
    return xm_stop_strings_create(slices, stops->n, &o->stops, err);
}

/* ---- writing ----------------------------------------------------------------------- */

/* A model must not send commands to a terminal: control characters are shown as ^X, those of
 * ISO 6429 as U+FFFD. */
static void
write_visible(const char *text, size_t n)
{
    for (size_t at = 0, length; at < n; at += length) {
        int32_t code;
        length = xm_utf8_next(xm_slice_of(text + at, n - at), &code);
        if (code == '\r')
            continue; /* of the end of a line */
        if ((code < 0x20 && code != '\n' && code != '\t') || code == 0x7f)
            printf("^%c", code < 0 ? '?' : code ^ 0x40);
        else if (code >= 0x80 && code < 0xa0)
            fputs("\xef\xbf\xbd", stdout);
        else
            fwrite(text + at, 1, length, stdout);
    }
}

static void
write_text(struct xm_text_out *o, const char *text, size_t n)
{
    if (n == 0)
        return;
    o->in_line = text[n - 1] != '\n';
    o->wrote = true;
    xm_cli_line_is_open(o->in_line);
    if (o->on_terminal)
        write_visible(text, n);
    else
        fwrite(text, 1, n, stdout);
    fflush(stdout);
}

/* An empty line comes between a thought and the text. */
static void
end_thought(struct xm_text_out *o, bool before_text)
{
    if (!o->in_thought)
        return;
    o->in_thought = false;
    if (o->styles) {
        fputs(NORMAL, stdout);
        fflush(stdout); /* what comes next may be standard error's */
    }
    xm_cli_farewell(STDOUT_FILENO, NULL);
    if (o->in_line)
        write_text(o, "\n", 1);
    if (before_text)
        write_text(o, "\n", 1);
}

/* Dim where the terminal can, apart by an empty line; else only that there is one is told. */
static void
show_thought(struct xm_text_out *o, const struct xm_strbuf *text)
{
    if (!o->show_thoughts) {
        xm_progress_show("thinking: %zu tokens", ++o->n_thought);
        return;
    }
    if (!o->in_thought && o->styles) {
        fputs(DIM, stdout);
        xm_cli_farewell(STDOUT_FILENO, NORMAL);
    }
    o->in_thought = true;
    write_text(o, xm_strbuf_text(text), text->n);
}

/* Leaves in o->raw what is text. */
static enum xm_status
take_out_thoughts(struct xm_text_out *o, bool last)
{
    struct xm_strbuf shown = {0};
    enum xm_answer_part part =
        xm_answer_text(o->answer, xm_strbuf_text(&o->raw), o->raw.n, &shown);
    if (last && part == XM_ANSWER_NOTHING)
        part = xm_answer_end(o->answer, &shown);
    xm_strbuf_clear(&o->raw);
    if (part == XM_ANSWER_THOUGHT && o->stream)
        show_thought(o, &shown);
    if (part == XM_ANSWER_TEXT)
        xm_strbuf_add_n(&o->raw, xm_strbuf_text(&shown), shown.n);
    bool good = xm_strbuf_ok(&shown) && xm_strbuf_ok(&o->raw);
    xm_strbuf_free(&shown);
    return good ? XM_OK : xm_fail(&o->err, XM_NO_MEMORY, "out of memory for the text");
}

/* Passes what has come to the stop strings, and what they let through to standard output. */
static enum xm_status
pass_on(struct xm_text_out *o, bool last)
{
    struct xm_strbuf out = {0};
    if (o->answer && take_out_thoughts(o, last) != XM_OK)
        return o->err.status;
    enum xm_status s = xm_stop_strings_push(o->stops, xm_strbuf_text(&o->raw), o->raw.n,
                                            &out, &o->stopped, &o->err);
    if (s == XM_OK && last)
        s = xm_stop_strings_flush(o->stops, &out, &o->err);
    xm_strbuf_clear(&o->raw);
    if (out.n)
        end_thought(o, true);
    if (o->stream)
        write_text(o, xm_strbuf_text(&out), out.n);
    if (o->keep)
        xm_strbuf_add_n(&o->text, xm_strbuf_text(&out), out.n);
    xm_strbuf_free(&out);
    return s == XM_OK && !xm_strbuf_ok(&o->text)
               ? xm_fail(&o->err, XM_NO_MEMORY, "out of memory for the text")
               : s;
}

/* What the detokenizer holds back belongs to the part before the mark. */
static enum xm_status
take_mark(struct xm_text_out *o, int32_t id)
{
    XM_TRY(xm_detokenizer_flush(&o->detokenizer, &o->raw, &o->err));
    XM_TRY(pass_on(o, false));
    xm_answer_take(o->answer, id);
    o->stopped |= o->answer->complete;
    return XM_OK;
}

static enum xm_status
take_token(struct xm_text_out *o, int32_t id)
{
    if (o->answer && xm_answer_is_mark(o->answer, id))
        return take_mark(o, id);
    XM_TRY(xm_detokenizer_push(&o->detokenizer, id, &o->raw, &o->err));
    return pass_on(o, false);
}

bool
xm_text_out_token(int32_t id, void *ctx)
{
    struct xm_text_out *o = ctx;
    xm_progress_clear();
    if (!o->has_text && o->stream) {
        printf("%" PRId32 "\n", id);
        fflush(stdout);
    }
    if (o->has_text && take_token(o, id) != XM_OK)
        return false;
    return !o->stopped && !xm_cli_interrupted();
}

enum xm_status
xm_text_out_finish(struct xm_text_out *o)
{
    xm_progress_clear();
    if (!o->has_text)
        return o->err.status;
    if (!o->stopped)
        xm_detokenizer_flush(&o->detokenizer, &o->raw, &o->err);
    pass_on(o, true);
    if (o->in_thought) {
        end_thought(o, false);
    } else if (o->stream && (o->wrote || !xm_cli_interrupted())) {
        putchar('\n');
        fflush(stdout);
    }
    xm_cli_line_is_open(false);
    return o->err.status;
}

void
xm_text_out_end(struct xm_text_out *o)
{
    if (o->has_text)
        xm_detokenizer_free(&o->detokenizer);
    xm_stop_strings_free(o->stops);
    xm_strbuf_free(&o->raw);
    xm_strbuf_free(&o->text);
}
