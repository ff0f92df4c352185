/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "plugin/cli/progress.h"

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
        seed = (uint32_t)(1e6 * xm_cli_now()) ^ (uint32_t)getpid();
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
    for (size_t i = 0; i < stops->n; i++)
        slices[i] = (struct xm_slice){stops->list[i], strlen(stops->list[i])};
    if (tokenizer)
        xm_detokenizer_init(&o->detokenizer, tokenizer, skip_special);
    return xm_stop_strings_create(slices, stops->n, &o->stops, err);
}

/* Passes what has come to the stop strings, and what they let through to standard output. */
static enum xm_status
pass_on(struct xm_text_out *o, bool last)
{
    struct xm_strbuf out = {0};
    enum xm_status s = xm_stop_strings_push(o->stops, xm_strbuf_text(&o->raw), o->raw.n,
                                            &out, &o->stopped, &o->err);
    if (s == XM_OK && last)
        s = xm_stop_strings_flush(o->stops, &out, &o->err);
    xm_strbuf_clear(&o->raw);
    if (o->stream && out.n) {
        xm_cli_line_is_open(true);
        fwrite(xm_strbuf_text(&out), 1, out.n, stdout);
        fflush(stdout);
        o->wrote = true;
    }
    if (o->keep)
        xm_strbuf_add_n(&o->text, xm_strbuf_text(&out), out.n);
    xm_strbuf_free(&out);
    return s == XM_OK && !xm_strbuf_ok(&o->text)
               ? xm_fail(&o->err, XM_NO_MEMORY, "out of memory for the text")
               : s;
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
    if (o->has_text &&
        (xm_detokenizer_push(&o->detokenizer, id, &o->raw, &o->err) != XM_OK ||
         pass_on(o, false) != XM_OK))
        return false;
    return !o->stopped && !xm_cli_interrupted();
}

enum xm_status
xm_text_out_finish(struct xm_text_out *o)
{
    if (!o->has_text)
        return o->err.status;
    if (!o->stopped)
        xm_detokenizer_flush(&o->detokenizer, &o->raw, &o->err);
    pass_on(o, true);
    if (o->stream && (o->wrote || !xm_cli_interrupted())) {
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
