/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the code that serves texts: each text has a row of logits, and the texts of a step are
 * chosen in parallel on all cores (pipeline/chooser.h). Rows are normally distributed: `peaked`
 * like those of language models (standard deviation 3, a few tokens stand out), `flat` with
 * standard deviation 1, the hardest case for filters.
 */
#include "plugin/cli/bench_sampling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "plugin/cli/cli.h"
#include "plugin/pipeline/chooser.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/rate.h"
#include "runtime/util/clock.h"
#include "runtime/util/number.h"
#include "runtime/util/workers.h"

enum {
    ACCEPTED = 2000, /* tokens of each text, for penalties           */
    PEAKS = 12,
    MOST_TEXTS = 16,
    DEPTH = 16, /* positions of each sequence of the timed steps */
    STEPS = 12
};
_Static_assert((DEPTH + STEPS) * MOST_TEXTS <= ACCEPTED, "the prompt has tokens for all");

static const uint64_t vocabularies[] = {152064, 262144}; /* of Qwen 3 and of Gemma */
static const size_t text_counts[] = {1, MOST_TEXTS};

static const struct sampler {
    const char *name;
    struct xm_sampling sampling;
} samplers[] = {
    {"greedy", {.top_p = 1}},
    {"temperature", {.temperature = 1, .top_p = 1}},
    {"top-k 40", {.temperature = 1, .top_k = 40, .top_p = 1}},
    {"top-k 20000", {.temperature = 1, .top_k = 20000, .top_p = 1}},
    {"top-p 0.9", {.temperature = 1, .top_p = 0.9f}},
    {"top-p 0.99", {.temperature = 1, .top_p = 0.99f}},
    {"min-p 0.05", {.temperature = 1, .top_p = 1, .min_p = 0.05f}},
    {"typical 0.9", {.temperature = 1, .top_p = 1, .typical_p = 0.9f}},
    {"typical 0.9, top-p 0.9", {.temperature = 1, .top_p = 0.9f, .typical_p = 0.9f}},
    {"top-n-sigma 1", {.temperature = 1, .top_p = 1, .top_n_sigma = 1}},
    {"xtc", {.temperature = 1, .top_p = 1, .xtc_probability = 1, .xtc_threshold = 0.05f}},
    {"mirostat 2", {.temperature = 1, .top_p = 1, .mirostat = 2}},
    {"dry", {.temperature = 1, .top_p = 1, .dry_multiplier = 0.8f}},
    {"repeat-penalty 1.1", {.temperature = 1, .top_p = 1, .repetition_penalty = 1.1f}},
    {"penalties, top-k 64, top-p",
     {.temperature = 0.7f,
      .top_k = 64,
      .top_p = 0.95f,
      .min_p = 0.01f,
      .repetition_penalty = 1.1f,
      .presence_penalty = 0.1f,
      .frequency_penalty = 0.1f}},
};
static const char *const row_names[] = {"peaked", "flat"};

struct args {
    struct xm_cli_target target; /* first */
    bool sampling; /* handled earlier by xm_cli_bench; a row only for the help */
    double seconds;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("Choosing tokens", "xemoe bench --sampling --json"),
    { 0, "sampling", XM_CLI_FLAG, AT(sampling), NULL, "measure the choice of tokens instead of models" },
    { 0, "seconds",  XM_CLI_RATE, AT(seconds),  "S",  "seconds for each sampler and number of texts (0.1)" },
};
#undef AT
/* clang-format on */

struct bench {
    const struct args *args;
    uint64_t vocabulary;
    struct xm_chooser *chooser;
    float *rows[MOST_TEXTS]; /* [vocabulary] */
    int32_t prompt[ACCEPTED];
    uint64_t random;
    uint64_t model_vocabulary; /* 0: no model is given */
    double step_s;             /* seconds of a step of MOST_TEXTS texts; 0: not known */
    struct xm_lines lines;     /* for standard output, without --json */
    struct xm_json_out json;   /* with --json                                */
    yyjson_mut_val *list;      /* the list of measurements in `json` */
};

/* ---- rows of logits --------------------------------------------------------------------- */

static double
uniform(struct bench *b)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return ((double)(b->random >> 11) + 0.5) * 0x1p-53;
}

static double
normal(struct bench *b)
{
    const double radius = sqrt(-2 * log(uniform(b)));
    return radius * cos(6.283185307179586 * uniform(b));
}

/* Makes a random prompt for a vocabulary of n tokens. */
static void
fill_prompt(struct bench *b, uint64_t n)
{
    for (size_t i = 0; i < ACCEPTED; i++)
        b->prompt[i] = (int32_t)(uniform(b) * (double)n);
}

static void
fill_row(struct bench *b, float *row, bool is_peaked)
{
    for (uint64_t i = 0; i < b->vocabulary; i++)
        row[i] = (float)((is_peaked ? 3 : 1) * normal(b));
    for (int i = 0; is_peaked && i < PEAKS; i++)
        row[(size_t)(uniform(b) * (double)b->vocabulary)] = (float)(16 + 6 * uniform(b));
}

/* ---- times ------------------------------------------------------------------------------ */

/* Returns the seconds of the fastest call that chooses a token for each of these texts. */
static enum xm_status
time_choices(struct bench *b, struct xm_text *texts, size_t n, double *best,
             struct xm_error *err)
{
    struct xm_choice choices[MOST_TEXTS];
    const double end = xm_now() + b->args->seconds;
    *best = INFINITY;
    for (double start = xm_now(), now; start < end || *best == INFINITY; start = now) {
        for (size_t i = 0; i < n; i++)
            choices[i] = (struct xm_choice){.text = &texts[i], .row = b->rows[i]};
        start = xm_now();
        XM_TRY(xm_chooser_run(b->chooser, choices, n, b->vocabulary, err));
        now = xm_now();
        *best = now - start < *best ? now - start : *best;
        for (size_t i = 0; i < n; i++)
            if (choices[i].error.status != XM_OK)
                return xm_fail(err, choices[i].error.status, "%s", choices[i].error.text);
    }
    return XM_OK;
}

static enum xm_status
time_sampler(struct bench *b, const struct sampler *s, size_t n, double *best,
             struct xm_error *err)
{
    const struct xm_generation asked = {.max_tokens = UINT64_MAX};
    const struct xm_text_source from = {.asked = &asked, .sampling = &s->sampling};
    struct xm_generation_result results[MOST_TEXTS] = {0};
    struct xm_text texts[MOST_TEXTS] = {0};
    enum xm_status status = XM_OK;
    for (size_t i = 0; i < n && status == XM_OK; i++) {
        status = xm_text_begin(&texts[i], &from, b->prompt, ACCEPTED, &results[i], err);
        if (status == XM_OK)
            status = xm_text_begin_sampling(&texts[i], b->vocabulary, err);
    }
    if (status == XM_OK)
        status = time_choices(b, texts, n, best, err);
    for (size_t i = 0; i < n; i++) {
        xm_text_free(&texts[i]);
        xm_generation_result_free(&results[i]);
    }
    return status;
}

/* ---- a step of a model ------------------------------------------------------------------- */

/* Runs steps of several texts, each with its own tokens, so that they use different experts. */
static enum xm_status
run_steps(const struct bench *b, struct xm_batch *batch, struct xm_sequence **sequences,
          double *best, struct xm_error *err)
{
    struct xm_batch_row rows[MOST_TEXTS];
    const int32_t *ids = b->prompt; /* tokens of the next text */
    *best = INFINITY;
    for (int step = 0; step < STEPS; step++) {
        const uint64_t n = step == 0 ? DEPTH : 1; /* the first step runs the prompts */
        for (uint64_t i = 0; i < MOST_TEXTS; i++, ids += n)
            rows[i] = (struct xm_batch_row){sequences[i], ids, n, 1};
        const double start = xm_now();
        XM_TRY(batch->ops->run(batch, rows, MOST_TEXTS, err));
        const double took = xm_now() - start;
        *best = step > 1 && took < *best ? took : *best; /* step 1 warms up */
    }
    return XM_OK;
}

/* Measures a step of the model. XM_UNSUPPORTED: the model does not support sequences. */
static enum xm_status
time_step(struct bench *b, struct xm_compiled *c, struct xm_error *err)
{
    struct xm_sequence *sequences[MOST_TEXTS] = {0};
    struct xm_batch *batch = NULL;
    enum xm_status s = xm_compiled_create_batch(c, &batch, err);
    for (int i = 0; i < MOST_TEXTS && s == XM_OK; i++)
        s = xm_compiled_create_sequence(c, &sequences[i], err);
    if (s == XM_OK) {
        xm_cli_catch_interrupt(batch->control);
        xm_progress_show("timing steps of %d texts", MOST_TEXTS);
        s = run_steps(b, batch, sequences, &b->step_s, err);
        xm_progress_clear();
        xm_cli_release_interrupt();
    }
    xm_compiled_destroy_batch(batch);
    for (int i = 0; i < MOST_TEXTS; i++)
        xm_compiled_destroy_sequence(sequences[i]);
    return s;
}

/* ---- output -------------------------------------------------------------------------------- */

static void
add_json(struct bench *b, const char *row, const char *name, size_t texts, double s)
{
    yyjson_mut_val *o = xm_json_add_object(&b->json, b->list, NULL);
    xm_json_add_text(&b->json, o, "sampler", name, strlen(name));
    xm_json_add_text(&b->json, o, "row", row, strlen(row));
    xm_json_add_whole(&b->json, o, "vocabulary", b->vocabulary);
    xm_json_add_whole(&b->json, o, "texts", texts);
    xm_json_add_real(&b->json, o, "ms", 1e3 * s);
    if (texts == MOST_TEXTS && b->step_s > 0.0)
        xm_json_add_real(&b->json, o, "step_share", s / b->step_s);
}

/* Returns the table; without a measured step it lacks the column of shares. */
static struct xm_table
table_of(const struct bench *b)
{
    static const struct xm_table_column columns[] = {
        {"", -30}, {"1 text", 9}, {"16 texts", 9}, {"of a step", 11}};
    return (struct xm_table){columns, XM_ARRAY_LEN(columns) - !(b->step_s > 0.0)};
}

static enum xm_status
run_sampler(struct bench *b, const char *row, const struct sampler *sampler,
            struct xm_error *err)
{
    double s[XM_ARRAY_LEN(text_counts)];
    for (size_t i = 0; i < XM_ARRAY_LEN(text_counts); i++) {
        XM_TRY(time_sampler(b, sampler, text_counts[i], &s[i], err));
        if (b->args->target.json)
            add_json(b, row, sampler->name, text_counts[i], s[i]);
    }
    if (b->args->target.json)
        return XM_OK;
    char name[40], one[24], many[24], share[24];
    snprintf(name, sizeof(name), "  %s", sampler->name);
    snprintf(one, sizeof(one), "%.3f", 1e3 * s[0]);
    snprintf(many, sizeof(many), "%.3f", 1e3 * s[1]);
    snprintf(share, sizeof(share), "%.2f %%", 100.0 * xm_rate(s[1], b->step_s));
    const struct xm_table table = table_of(b);
    xm_table_row(&b->lines, &table, (const char *const[]){name, one, many, share});
    fflush(stdout);
    return XM_OK;
}

static enum xm_status
run_rows(struct bench *b, size_t kind, struct xm_error *err)
{
    for (size_t i = 0; i < MOST_TEXTS; i++)
        fill_row(b, b->rows[i], kind == 0);
    if (!b->args->target.json) {
        const struct xm_table table = table_of(b);
        xm_lines_add(&b->lines, "\n%" PRIu64 " tokens, %s rows: ms\n", b->vocabulary,
                     row_names[kind]);
        xm_table_head(&b->lines, &table);
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(samplers); i++) {
        if (xm_cli_interrupted())
            return xm_fail(err, XM_CANCELLED, "interrupted");
        XM_TRY(run_sampler(b, row_names[kind], &samplers[i], err));
    }
    return XM_OK;
}

static enum xm_status
run_vocabulary(struct bench *b, uint64_t n, struct xm_error *err)
{
    bool has_memory = true;
    b->vocabulary = n;
    for (size_t i = 0; i < MOST_TEXTS; i++) {
        float *grown = xm_realloc(b->rows[i], (size_t)n * sizeof(*grown));
        has_memory &= grown != NULL;
        b->rows[i] = grown ? grown : b->rows[i];
    }
    if (!has_memory)
        return xm_no_memory(err, "rows of %" PRIu64 " logits", n);
    fill_prompt(b, n);
    for (size_t kind = 0; kind < XM_ARRAY_LEN(row_names); kind++)
        XM_TRY(run_rows(b, kind, err));
    return XM_OK;
}

static enum xm_status
run_all(struct bench *b, struct xm_error *err)
{
    const size_t cores = xm_workers_cores();
    if (!b->args->target.json)
        xm_lines_add(
            &b->lines,
            "%zu core%s; each text has %d tokens; the shortest time within %g s\n", cores,
            xm_plural(cores), ACCEPTED, b->args->seconds);
    if (!b->args->target.json && b->step_s > 0.0)
        xm_lines_add(&b->lines, "a step of %d texts after %d tokens each: %.3f ms\n",
                     MOST_TEXTS, DEPTH, 1e3 * b->step_s);
    if (b->model_vocabulary)
        return run_vocabulary(b, b->model_vocabulary, err);
    for (size_t i = 0; i < XM_ARRAY_LEN(vocabularies); i++)
        XM_TRY(run_vocabulary(b, vocabularies[i], err));
    return XM_OK;
}

static enum xm_status
run_json(struct bench *b, struct xm_error *err)
{
    xm_json_begin(&b->json);
    xm_json_add_whole(&b->json, NULL, "cores", xm_workers_cores());
    if (b->step_s > 0.0)
        xm_json_add_real(&b->json, NULL, "step_ms", 1e3 * b->step_s);
    b->list = xm_json_add_array(&b->json, NULL, "sampling");
    enum xm_status s = run_all(b, err);
    if (s == XM_OK)
        s = xm_json_print(&b->json, err);
    xm_json_end(&b->json);
    return s;
}

/* ---- the command --------------------------------------------------------------------------- */

static int
open_model(struct bench *b)
{
    const struct xm_compile_options compile = {.sampled_logits = true};
    struct xm_error err = {0};
    struct xm_cli_model m;
    const int code = xm_cli_model_open(&m, &b->args->target, &compile);
    if (code != XM_EXIT_OK)
        return code;
    b->model_vocabulary = xm_cli_vocabulary(&m);
    enum xm_status s = XM_OK;
    if (b->model_vocabulary > INT32_MAX)
        s = xm_fail(&err, XM_UNSUPPORTED,
                    "the size of the model's vocabulary is not known");
    if (s == XM_OK) {
        fill_prompt(b, b->model_vocabulary);
        s = time_step(b, m.compiled, &err);
    }
    xm_cli_model_close(&m);
    return s == XM_OK ? XM_EXIT_OK : xm_cli_failed(&err);
}

int
xm_cli_bench_sampling(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe bench --sampling [MODEL] [--seconds S] [options]",
        .name = "bench --sampling",
        .example = "xemoe bench --sampling model.gguf",
        .about = "Measures the milliseconds that the choice of a token takes, for one "
                 "text and for\nthe 16 texts of a step, by sampler, for vocabularies of "
                 "152064 and 262144 tokens.\nWith a model: for its vocabulary, beside "
                 "the time of a step of 16 texts.\n",
        XM_CLI_TARGET_AND(options),
        .operand_is_optional = true,
    };
    struct args a = {.seconds = 0.1};
    struct xm_error err = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    struct bench *b = xm_calloc(1, sizeof(*b));
    if (b)
        b->chooser = xm_chooser_create();
    if (!b || !b->chooser) {
        xm_free(b);
        xm_no_memory(&err, "a measurement");
        return xm_cli_failed(&err);
    }
    b->args = &a;
    b->lines = xm_lines_to(stdout);
    b->random = 1;
    code = a.target.model ? open_model(b) : XM_EXIT_OK;
    if (code == XM_EXIT_OK) {
        xm_cli_note_interrupt();
        code = (a.target.json ? run_json(b, &err) : run_all(b, &err)) == XM_OK
                   ? xm_cli_flush()
                   : xm_cli_failed(&err);
        xm_cli_release_interrupt();
    }
    xm_lines_end(&b->lines);
    for (size_t i = 0; i < MOST_TEXTS; i++)
        xm_free(b->rows[i]);
    xm_chooser_free(b->chooser);
    xm_free(b);
    return code;
}
