/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/text_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/job.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/number.h"
#include "runtime/util/utf8.h"

/* clang-format off */
#define AT(member) offsetof(struct xm_cli_generation, member)
#define KIND_REAL      XM_CLI_REAL
#define KIND_WHOLE     XM_CLI_WHOLE
#define KIND_COUNT     XM_CLI_COUNT
#define KIND_SEED      XM_CLI_TEXT
#define KIND_BIAS      XM_CLI_WORDS
#define KIND_SET       XM_CLI_WORDS
#define KIND_SEQUENCES XM_CLI_WORDS
#define SAMPLING(kind, member, draws, least, most, unsaid, zero, option, value, aliases, help, ...) \
    { 0, option, KIND_##kind, AT(member), value, help, aliases },
const struct xm_cli_option xm_cli_generation_options[XM_CLI_N_GENERATION_OPTIONS] = {
    XM_CLI_TARGET_ROWS,
    XM_CLI_TUNE_ROW,
    XM_CLI_GROUP("Choice of tokens", "--temp 0.7 --top-p 0.9 --seed 1"),
#include "plugin/text/sampling.def"
    { 'c', "context",         XM_CLI_BOUND, AT(context),            "N",    "at most N tokens of prompt and answers together; 0: the context for which the model was trained", "ctx-size" },
    { 0, "stop",              XM_CLI_WORDS, AT(stops),              "TEXT", "end the text before this stop string; may be given several times" },
    { 0, "grammar",           XM_CLI_WORD,  AT(grammar),            "GBNF", "the text must match this GBNF grammar, given as a text with ::= or as a file", "grammar-file" },
    { 0, "json-schema",       XM_CLI_WORD,  AT(json_schema),        "JSON", "the text must be JSON that is valid for this schema, given as a text with { or as a file", "json-schema-file -j" },
};
/* Offsets of the values of sampling.def's rows. */
#define SAMPLING(kind, member, ...) AT(member),
static const size_t offsets[XM_N_SAMPLING] = {
#include "plugin/text/sampling.def"
};
#undef AT
/* clang-format on */

/* Reads a seed. -1 means a random one, as in llama.cpp; all processes of an MPI job use the
 * same. */
static enum xm_status
read_seed(const char *text, uint64_t *out, struct xm_error *err)
{
    struct xm_strbuf number = {0};
    if (text && strcmp(text, "-1") != 0)
        return xm_parse_whole(text, out)
                   ? XM_OK
                   : xm_fail(err, XM_INVALID,
                             "option --seed takes a whole number from 0 to %" PRIu64
                             ", or -1 for a random one, found '%.60s'",
                             UINT64_MAX, text);
    xm_strbuf_printf(&number, "%" PRIu64, xm_sampling_random_seed());
    enum xm_status s = xm_mpi_job_share(XM_OK, &number, err);
    if (s == XM_OK && !xm_parse_whole(xm_strbuf_text(&number), out))
        s = xm_no_memory(err, "a seed");
    xm_strbuf_free(&number);
    return s;
}

void
xm_cli_generation_open(struct xm_cli_generation *a)
{
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        void *member = (char *)a + offsets[i];
        if (xm_sampling_rows[i].kind == XM_SAMPLING_REAL)
            *(float *)member = NAN; /* a value that no option accepts */
        else if (xm_sampling_is_number(&xm_sampling_rows[i]))
            *(uint64_t *)member = UINT64_MAX;
    }
}

/* Returns the value of a numeric row; NAN: not given. A count beyond INT_MAX means no bound and
 * becomes 0. */
static double
given(const struct xm_cli_generation *a, size_t i)
{
    const struct xm_sampling_row *row = &xm_sampling_rows[i];
    const void *member = (const char *)a + offsets[i];
    if (row->kind == XM_SAMPLING_REAL)
        return (double)*(const float *)member;
    const uint64_t whole = *(const uint64_t *)member;
    if (whole > INT32_MAX && row->most == (double)INT32_MAX)
        return whole == UINT64_MAX ? NAN : 0.0;
    return whole == UINT64_MAX ? NAN : (double)whole;
}

bool
xm_cli_sampling_is_given(const struct xm_cli_generation *a, size_t row)
{
    return !isnan(given(a, row));
}

const char *
xm_cli_sampling_option(const struct xm_cli_generation *a)
{
    if (!isnan(a->temperature))
        return NULL;
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        if (row->draws && (xm_sampling_is_number(row) ? !isnan(given(a, i))
                                                      : i == XM_AT_seed && a->seed))
            return row->option;
    }
    return NULL;
}

static enum xm_status
take_number(const struct xm_cli_generation *a, size_t i, struct xm_sampling *out,
            struct xm_error *err)
{
    const struct xm_sampling_row *row = &xm_sampling_rows[i];
    const double x = given(a, i);
    if (isnan(x))
        return XM_OK;
    if (!xm_sampling_takes(row, x))
        return xm_fail(err, XM_INVALID,
                       "option --%s takes a %snumber from %g up to %g, found %g",
                       row->option, row->kind == XM_SAMPLING_REAL ? "" : "whole ",
                       row->least, row->most, x);
    xm_sampling_set(out, row, x);
    return XM_OK;
}

/* Checks, before a model is read, that biases can be parsed. */
static enum xm_status
check_biases(const struct xm_cli_generation *a, struct xm_error *err)
{
    struct xm_sampling_lists lists = {0};
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < a->logit_bias.n && s == XM_OK; i++)
        s = xm_sampling_read_biases(&lists, a->logit_bias.list[i], err);
    xm_sampling_lists_free(&lists);
    xm_error_prefix(err, "option --logit-bias");
    return s;
}

enum xm_status
xm_cli_sampling(const struct xm_cli_generation *a, struct xm_sampling *out,
                struct xm_error *err)
{
    uint64_t seed;
    xm_sampling_init(out);
    for (size_t i = 0; i < XM_N_SAMPLING; i++)
        if (xm_sampling_is_number(&xm_sampling_rows[i]))
            XM_TRY(take_number(a, i, out, err));
    if (out->mirostat == 1)
        return xm_fail(err, XM_INVALID,
                       "option --mirostat takes 0 or 2, for Mirostat 2.0, found 1");
    XM_TRY(read_seed(a->seed, &seed, err));
    out->seed = seed;
    XM_TRY(check_biases(a, err));
    return xm_cli_check_context(a->context, err);
}

int
xm_cli_check_biased(const struct xm_cli_model *m, const void *generation)
{
    const struct xm_cli_generation *a = generation;
    const uint64_t vocabulary = xm_cli_vocabulary(m);
    struct xm_sampling_lists lists = {0};
    struct xm_error err = {0};
    enum xm_status s = XM_OK;
    int code = XM_EXIT_OK;
    for (size_t i = 0; i < a->logit_bias.n && s == XM_OK; i++)
        s = xm_sampling_read_biases(&lists, a->logit_bias.list[i], &err);
    if (s != XM_OK)
        code = xm_cli_failed(&err);
    for (size_t i = 0; i < lists.n_biases && code == XM_EXIT_OK; i++) {
        const int32_t id = lists.biases[i].id;
        if ((uint64_t)id >= vocabulary)
            code = xm_cli_usage("option --logit-bias names token %" PRId32
                                ", but the vocabulary has %" PRIu64 " tokens",
                                id, vocabulary);
    }
    xm_sampling_lists_free(&lists);
    return code;
}

static enum xm_status
take_texts(size_t row, const struct xm_cli_texts *texts,
           const struct xm_tokenizer *tokenizer, struct xm_sampling_lists *lists,
           struct xm_error *err)
{
    const bool is_bias = xm_sampling_rows[row].kind == XM_SAMPLING_BIAS;
    const bool is_set = xm_sampling_rows[row].kind == XM_SAMPLING_SET;
    for (size_t i = 0; i < texts->n; i++) {
        const char *text = texts->list[i];
        if (is_bias)
            XM_TRY(xm_sampling_read_biases(lists, text, err));
        else if (is_set && strcmp(text, "none") == 0)
            lists->said[row] = true;
        else
            XM_TRY(xm_sampling_add_text(lists, row, tokenizer,
                                        xm_slice_of(text, strlen(text)), err));
    }
    return XM_OK;
}

enum xm_status
xm_cli_sampling_lists(const struct xm_cli_generation *a, const struct xm_package *package,
                      struct xm_sampling_lists *lists, struct xm_sampling *out,
                      struct xm_error *err)
{
    const struct xm_tokenizer *tokenizer = package ? package->tokenizer : NULL;
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        const void *texts = (const char *)a + offsets[i];
        if (xm_sampling_is_number(row) || row->kind == XM_SAMPLING_SEED)
            continue;
        if (take_texts(i, texts, tokenizer, lists, err) != XM_OK) {
            xm_error_prefix(err, "option --%s", row->option);
            return err->status;
        }
    }
    return xm_sampling_take_lists(lists, tokenizer, out, err);
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

/* Writes text with control characters as ^X, and those of ISO 6429 as U+FFFD, because a model must
 * not send commands to a terminal. */
static void
write_visible(const char *text, size_t n)
{
    for (size_t at = 0, length; at < n; at += length) {
        int32_t code;
        length = xm_utf8_next(xm_slice_of(text + at, n - at), &code);
        if (code == '\r')
            continue; /* part of a line end */
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

/* Ends a thought; an empty line separates it from the text. */
static void
end_thought(struct xm_text_out *o, bool before_text)
{
    if (!o->in_thought)
        return;
    o->in_thought = false;
    if (o->styles) {
        fputs(XM_STYLE_NOT_DIM, stdout);
        fflush(stdout); /* before other output to standard error */
    }
    xm_cli_farewell(STDOUT_FILENO, NULL);
    if (o->in_line)
        write_text(o, "\n", 1);
    if (before_text)
        write_text(o, "\n", 1);
}

/* Writes a thought, dim if the terminal supports it. If thoughts are hidden, shows only the number
 * of their tokens on the progress line. */
static void
show_thought(struct xm_text_out *o, const char *text, size_t n)
{
    if (!o->show_thoughts) {
        o->n_thought++;
        xm_progress_show("thinking: %zu token%s", o->n_thought, xm_plural(o->n_thought));
        return;
    }
    if (!o->in_thought && o->styles) {
        fputs(XM_STYLE_DIM, stdout);
        xm_cli_farewell(STDOUT_FILENO, XM_STYLE_NOT_DIM);
    }
    o->in_thought = true;
    write_text(o, text, n);
}

/* Writes a tool call on a line of its own; this program does not run it. */
static void
write_call(struct xm_text_out *o, const struct xm_tool_call *call)
{
    end_thought(o, true);
    if (o->in_line)
        write_text(o, "\n", 1);
    o->in_call = true;
    write_text(o, "call ", 5);
    write_text(o, call->name, strlen(call->name));
    write_text(o, " ", 1);
    write_text(o, call->arguments, strlen(call->arguments));
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
    } else if (piece->part == XM_ANSWER_CALL) {
        write_call(o, piece->call);
    } else if (piece->part == XM_ANSWER_TEXT) {
        end_thought(o, true);
        if (o->in_call)
            write_text(o, "\n", 1);
        o->in_call = false;
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
