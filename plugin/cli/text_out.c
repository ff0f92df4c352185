/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/text_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/clock.h"
#include "runtime/util/number.h"
#include "runtime/util/utf8.h"

/* clang-format off */
#define AT(member) offsetof(struct xm_cli_generation, member)
const struct xm_cli_option xm_cli_generation_options[XM_CLI_N_GENERATION_OPTIONS] = {
    XM_CLI_TARGET_ROWS,
    XM_CLI_TUNE_ROW,
    XM_CLI_GROUP("Which tokens", "--temp 0.7 --top-p 0.9 --seed 1"),
    { 0, "temp",              XM_CLI_REAL,  AT(temperature),        "T",    "temperature; 0 takes the likeliest token. Default: 0, in chat what the model's files recommend; beside --top-k, --top-p, --min-p or --seed what they recommend, else 0.8", "temperature" },
    { 0, "top-k",             XM_CLI_WHOLE, AT(top_k),              "K",    "choose among the K likeliest tokens (0: among all)" },
    { 0, "top-p",             XM_CLI_REAL,  AT(top_p),              "P",    "choose among the likeliest tokens that reach probability P" },
    { 0, "min-p",             XM_CLI_REAL,  AT(min_p),              "P",    "leave out tokens below P times the likeliest one's probability" },
    { 0, "seed",              XM_CLI_TEXT,  AT(seed),               "S",    "seed of the random numbers; -1 (default): another one each time" },
    { 0, "repeat-penalty",    XM_CLI_REAL,  AT(repetition_penalty), "R",    "divide the logits of tokens that have occurred (0 or 1: off)" },
    { 0, "presence-penalty",  XM_CLI_REAL,  AT(presence_penalty),   "P",    "subtract P from the logits of tokens that have occurred" },
    { 0, "frequency-penalty", XM_CLI_REAL,  AT(frequency_penalty),  "F",    "subtract F from a token's logit for each time it has occurred" },
    { 0, "repeat-last-n",     XM_CLI_COUNT, AT(last_n),             "N",    "penalties look at the last N tokens (all)" },
    { 'c', "context",         XM_CLI_BOUND, AT(context),            "N",    "at most N tokens of prompt and answers together; 0: as many as the model was trained for", "ctx-size" },
    { 0, "stop",              XM_CLI_TEXTS, AT(stops),              "TEXT", "end before this text; may be given several times" },
    { 0, "grammar",           XM_CLI_TEXT,  AT(grammar),            "GBNF", "the text matches this grammar, a text with ::= or a file", "grammar-file" },
    { 0, "json-schema",       XM_CLI_TEXT,  AT(json_schema),        "JSON", "the text is JSON that is valid for this schema, a text with { or a file", "json-schema-file -j" },
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

/* As llama.cpp has it, -1 asks for a random seed. */
static bool
read_seed(const char *text, uint64_t *out)
{
    if (text && strcmp(text, "-1") != 0)
        return xm_parse_whole(text, out);
    *out = random_seed();
    return true;
}

static int
clamp_int(uint64_t n)
{
    return n < INT32_MAX ? (int)n : 0;
}

void
xm_cli_generation_open(struct xm_cli_generation *a)
{
    a->temperature = a->top_p = a->min_p = NAN; /* which no option takes */
    a->top_k = UINT64_MAX;
}

const char *
xm_cli_sampling_option(const struct xm_cli_generation *a)
{
    return !isnan(a->temperature)   ? NULL
           : a->top_k != UINT64_MAX ? "--top-k"
           : !isnan(a->top_p)       ? "--top-p"
           : !isnan(a->min_p)       ? "--min-p"
           : a->seed                ? "--seed"
                                    : NULL;
}

static float
given_or(float value, float otherwise)
{
    return isnan(value) ? otherwise : value;
}

enum xm_status
xm_cli_sampling(const struct xm_cli_generation *a, struct xm_sampling *out,
                struct xm_error *err)
{
    uint64_t seed;
    if (a->top_p > 1.0f)
        return xm_fail(err, XM_INVALID,
                       "option --top-p takes a number from 0 up to 1, found %g",
                       (double)a->top_p);
    if (a->min_p > 1.0f)
        return xm_fail(err, XM_INVALID,
                       "option --min-p takes a number from 0 up to 1, found %g",
                       (double)a->min_p);
    if (!read_seed(a->seed, &seed))
        return xm_fail(err, XM_INVALID,
                       "option --seed takes a whole number from 0 to %" PRIu64
                       ", or -1 for a random one, found '%.60s'",
                       UINT64_MAX, a->seed);
    for (size_t i = 0; i < a->stops.n; i++) {
        if (a->stops.list[i][0] == '\0')
            return xm_fail(err, XM_INVALID,
                           "option --stop takes a text, found an empty one");
    }
    XM_TRY(xm_cli_check_context(a->context, err));
    *out = (struct xm_sampling){.temperature = given_or(a->temperature, 0.0f),
                                .top_k = clamp_int(a->top_k),
                                .top_p = given_or(a->top_p, 1.0f),
                                .seed = seed,
                                .min_p = given_or(a->min_p, 0.0f),
                                .repetition_penalty = a->repetition_penalty,
                                .presence_penalty = a->presence_penalty,
                                .frequency_penalty = a->frequency_penalty,
                                .last_n = clamp_int(a->last_n)};
    return XM_OK;
}

struct xm_cli_stops
xm_cli_stops(const struct xm_cli_generation *a)
{
    struct xm_cli_stops stops = {.n = a->stops.n};
    for (size_t i = 0; i < stops.n; i++)
        stops.list[i] = xm_slice_of(a->stops.list[i], strlen(a->stops.list[i]));
    return stops;
}

void
xm_text_out_begin(struct xm_text_out *o, bool has_text, bool stream)
{
    *o = (struct xm_text_out){.has_text = has_text, .stream = stream};
    o->on_terminal = xm_terminal_is(STDOUT_FILENO);
    o->styles = xm_terminal_has_styles(STDOUT_FILENO);
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
        fputs(XM_STYLE_NOT_DIM, stdout);
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
show_thought(struct xm_text_out *o, const char *text, size_t n)
{
    if (!o->show_thoughts) {
        xm_progress_show("thinking: %zu tokens", ++o->n_thought);
        return;
    }
    if (!o->in_thought && o->styles) {
        fputs(XM_STYLE_DIM, stdout);
        xm_cli_farewell(STDOUT_FILENO, XM_STYLE_NOT_DIM);
    }
    o->in_thought = true;
    write_text(o, text, n);
}

bool
xm_text_out_piece(const struct xm_piece *piece, void *ctx)
{
    struct xm_text_out *o = ctx;
    xm_progress_clear();
    if (!o->stream)
        return !xm_cli_interrupted();
    if (!o->has_text) {
        printf("%" PRId32 "\n", piece->id);
        fflush(stdout);
    }
    if (piece->part == XM_ANSWER_THOUGHT) {
        show_thought(o, piece->text, piece->n);
    } else if (piece->part == XM_ANSWER_TEXT) {
        end_thought(o, true);
        write_text(o, piece->text, piece->n);
    }
    return !xm_cli_interrupted();
}

void
xm_text_out_finish(struct xm_text_out *o, bool is_whole)
{
    xm_progress_clear();
    if (!o->has_text)
        return;
    if (o->in_thought) {
        end_thought(o, false);
    } else if (o->stream && (o->wrote || (is_whole && !xm_cli_interrupted()))) {
        putchar('\n');
        fflush(stdout);
    }
    xm_cli_line_is_open(false);
}
