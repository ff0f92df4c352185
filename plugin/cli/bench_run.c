/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one test of xemoe bench: random tokens after a filled cache, timed several times.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "plugin/cli/bench_parts.h"
#include "plugin/cli/job.h"
#include "plugin/cli/kernels.h"
#include "plugin/cli/tuner_process.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"
#include "runtime/util/random.h"

/* ---- the model --------------------------------------------------------------------- */

/* Whether the model loaded for one test can be used for the other. */
static bool
same_model(const struct xm_bench_test *a, const struct xm_bench_test *b)
{
    return a->model && strcmp(a->model, b->model) == 0 && a->device == b->device &&
           a->ubatch == b->ubatch && a->type_k == b->type_k && a->type_v == b->type_v;
}

void
xm_bench_unload(struct xm_bench_bed *bed)
{
    if (bed->loaded.model && bed->code == XM_EXIT_OK)
        xm_cli_model_close(&bed->model);
    bed->loaded.model = NULL;
}

/* Opens the model, measures its kernels, and opens it again with the chosen ones, so that all tests
 * of a command use the same kernels. Ctrl-C ends the command. */
static int
open_measured(struct xm_cli_model *m, struct xm_cli_target *target)
{
    const struct xm_compile_options options = {.sampled_logits = true};
    int code = xm_cli_model_open(m, target, &options);
    const bool is_changed = code == XM_EXIT_OK && xm_cli_tuner_run(m->tuner, true, -1);
    const bool is_stopped = code == XM_EXIT_OK && xm_cli_interrupted();
    if (!is_changed && !is_stopped)
        return code;
    xm_cli_model_close(m);
    if (is_stopped) {
        xm_cli_say_interrupted();
        return XM_EXIT_CANCELLED;
    }
    target->tunes = target->tune = false;
    return xm_cli_model_open(m, target, &options);
}

int
xm_bench_load(struct xm_bench_bed *bed, const struct xm_bench_args *a,
              const struct xm_bench_test *t)
{
    struct xm_cli_target target = a->target;
    if (same_model(&bed->loaded, t))
        return bed->code;
    xm_bench_unload(bed);
    bed->loaded = *t;
    target.model = t->model;
    target.device = t->device->name;
    target.ubatch = t->ubatch;
    target.key_cache = t->type_k;
    target.value_cache = t->type_v;
    bed->code = open_measured(&bed->model, &target);
    if (bed->code != XM_EXIT_OK)
        return bed->code;
    xm_progress_show("reading %s", t->model);
    xm_model_id_find(&bed->model, &bed->id);
    xm_progress_clear();
    return XM_EXIT_OK;
}

/* ---- tokens ------------------------------------------------------------------------ */

struct tokens {
    uint64_t state; /* state of the random numbers; the same at the start of each test */
    uint64_t vocabulary; /* ids are below it */
    bool has_first;      /* texts begin with `first` */
    int32_t first;
    int32_t *ids; /* memory for the longest feed */
};

static int32_t
random_id(struct tokens *t)
{
    return (int32_t)((xm_random_next(&t->state) >> 33) % t->vocabulary);
}

static enum xm_status
find_tokens(const struct xm_cli_model *m, uint64_t batch, struct tokens *out,
            struct xm_error *err)
{
    const struct xm_tokenizer *tokenizer = m->package->tokenizer;
    *out = (struct tokens){.state = 1, .vocabulary = xm_compiled_vocabulary(m->compiled)};
    if (tokenizer && xm_tokenizer_vocab_size(tokenizer) < out->vocabulary)
        out->vocabulary = xm_tokenizer_vocab_size(tokenizer);
    if (out->vocabulary == 0 || out->vocabulary > INT32_MAX)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the size of the model's vocabulary is not known");
    out->has_first = xm_model_first_token(m, &out->first);
    out->ids = xm_calloc((size_t)batch, sizeof(*out->ids));
    return out->ids ? XM_OK : xm_no_memory(err, "tokens");
}

/* ---- a run ------------------------------------------------------------------------- */

/* Texts that run together; without a batch, the test's only text is the token runner's. */
struct texts {
    struct xm_batch *batch;
    struct xm_sequence **list; /* [test->n_parallel], owned                         */
    struct xm_batch_row *rows;
    uint64_t past; /* number of positions of each text */
};

struct run {
    const struct xm_bench_args *args;
    const struct xm_bench_test *test;
    struct xm_compiled *compiled;
    struct xm_token_runner *runner;
    struct texts texts;
    struct tokens tokens;
    char name[XM_BENCH_TEST_CHARS];
};

/* Feeds n tokens to each text. The texts have different tokens, so that they use different
 * experts. */
static enum xm_status
feed_texts(struct run *r, uint64_t n, struct xm_error *err)
{
    struct texts *texts = &r->texts;
    struct tokens *t = &r->tokens;
    const uint64_t count = r->test->n_parallel;
    for (uint64_t i = 0; i < count; i++) {
        int32_t *ids = t->ids + i * n;
        for (uint64_t k = 0; k < n; k++)
            ids[k] = random_id(t);
        if (t->has_first && texts->past == 0)
            ids[0] = t->first;
        texts->rows[i] = (struct xm_batch_row){texts->list[i], ids, n, 1};
    }
    texts->past += n;
    XM_TRY(texts->batch->ops->run(texts->batch, texts->rows, (uint32_t)count, err));
    /* fails for unsound logits, as the runner of one text does */
    for (uint32_t i = 0; i < count && !xm_dry_run(); i++) {
        uint64_t rows, vocabulary;
        const float *row = texts->batch->ops->logits(texts->batch, i, &rows, &vocabulary);
        XM_TRY(xm_logits_check(r->compiled, row, vocabulary, texts->past - 1, err));
    }
    return XM_OK;
}

static enum xm_status
feed(struct run *r, uint64_t n, struct xm_error *err)
{
    struct tokens *t = &r->tokens;
    if (r->texts.batch)
        return feed_texts(r, n, err);
    for (uint64_t i = 0; i < n; i++)
        t->ids[i] = random_id(t);
    if (t->has_first && xm_token_runner_past(r->runner) == 0)
        t->ids[0] = t->first;
    return xm_token_runner_feed(r->runner, t->ids, n, 1, err);
}

/* Returns how many tokens of each text run at once. */
static uint64_t
tokens_at_once(const struct xm_bench_test *t)
{
    return t->batch > t->n_parallel ? t->batch / t->n_parallel : 1;
}

static enum xm_status
feed_prompt(struct run *r, uint64_t n, struct xm_error *err)
{
    const uint64_t batch = tokens_at_once(r->test);
    for (uint64_t done = 0; done < n; done += batch)
        XM_TRY(feed(r, n - done < batch ? n - done : batch, err));
    return XM_OK;
}

static enum xm_status
feed_one_by_one(struct run *r, uint64_t n, struct xm_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        XM_TRY(feed(r, 1, err));
    return XM_OK;
}

/* Shows the progress; `run`: number of the timed run, from 1; 0: not a timed run. */
static void
say(const struct run *r, const char *what, uint64_t run)
{
    char which[48] = "";
    if (run)
        snprintf(which, sizeof(which), " %" PRIu64 " of %" PRIu64, run, r->args->reps);
    if (r->args->progress)
        xm_say("test %zu of %zu: %s: %s%s", r->test->number, r->test->of, r->name, what,
               which);
    else
        xm_progress_show("test %zu of %zu: %s: %s%s", r->test->number, r->test->of,
                         r->name, what, which);
}

/* Returns the number of positions that the device could keep, which the texts have now. */
static uint64_t
keep_positions(struct run *r, uint64_t past)
{
    struct texts *texts = &r->texts;
    if (!texts->batch) {
        xm_token_runner_truncate(r->runner, past);
        return xm_token_runner_past(r->runner);
    }
    for (uint64_t i = 0; i < r->test->n_parallel; i++)
        texts->list[i]->ops->truncate(texts->list[i], past);
    texts->past = texts->list[0]->ops->past(texts->list[0]);
    return texts->past;
}

/* Restores the cache to the depth's tokens. Layers with a sliding window may have lost some of
 * them: then they are fed again. */
static enum xm_status
return_to_depth(struct run *r, struct xm_error *err)
{
    const uint64_t depth = r->test->depth, past = keep_positions(r, depth);
    if (past == depth)
        return XM_OK;
    say(r, "filling the cache", 0);
    return feed_prompt(r, depth - past, err);
}

static uint64_t
weights_to_come(const struct run *r)
{
    struct xm_compiled_stats stats = {0};
    if (r->compiled->ops->stats)
        r->compiled->ops->stats(r->compiled, &stats);
    return stats.weight_bytes_to_come;
}

/* Waits until all weights are in memory, because few tokens do not touch all experts, whose pages
 * would otherwise be read while a run is timed. Ctrl-C cancels the next run. */
static void
wait_for_weights(struct run *r)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    if (weights_to_come(r))
        say(r, "reading the weights", 0);
    while (weights_to_come(r) && !xm_cli_interrupted())
        nanosleep(&moment, NULL);
}

/* Replaces `own` by that of the first process: all processes of an MPI job must make the same runs,
 * though a run takes another time in each. */
static enum xm_status
take_from_first(bool *own, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    xm_strbuf_add(&text, *own ? "yes" : "");
    const enum xm_status s = xm_mpi_job_share(XM_OK, &text, err);
    *own = text.n > 0;
    xm_strbuf_free(&text);
    return s;
}

/* Runs the test untimed, so that first launches' builds and allocations are not timed. Short runs
 * are repeated for a tenth of a second, because processors that were idle react slowly to each
 * launch until then. */
static enum xm_status
warm_up(struct run *r, struct xm_error *err)
{
    const double least_s = 0.1;
    double spent_s = 0.0;
    bool goes_on = true;
    XM_TRY(return_to_depth(r, err));
    if (r->args->no_warmup)
        return XM_OK;
    say(r, "warming up", 0);
    while (goes_on) {
        const double begin = xm_now();
        XM_TRY(return_to_depth(r, err));
        XM_TRY(feed_prompt(r, r->test->n_prompt, err));
        XM_TRY(feed_one_by_one(r, r->test->n_gen ? 1 : 0, err));
        const double last_s = xm_now() - begin;
        spent_s += last_s;
        goes_on = spent_s + last_s < least_s;
        XM_TRY(take_from_first(&goes_on, err));
    }
    return XM_OK;
}

static enum xm_status
time_run(struct run *r, uint64_t *ns, struct xm_error *err)
{
    XM_TRY(return_to_depth(r, err));
    const double start = xm_now();
    XM_TRY(feed_prompt(r, r->test->n_prompt, err));
    XM_TRY(feed_one_by_one(r, r->test->n_gen, err));
    *ns = (uint64_t)(1e9 * (xm_now() - start));
    return XM_OK;
}

static enum xm_status
time_runs(struct run *r, uint64_t *samples_ns, struct xm_error *err)
{
    const struct xm_bench_test *t = r->test;
    if (r->runner)
        xm_token_runner_expect(r->runner, t->depth + t->n_prompt + t->n_gen);
    xm_cli_show_builds();
    enum xm_status s = warm_up(r, err);
    xm_cli_hide_builds();
    for (uint64_t i = 0; i < r->args->reps && s == XM_OK; i++) {
        say(r, "run", i + 1);
        s = time_run(r, &samples_ns[i], err);
    }
    return s;
}

static enum xm_status
create_texts(struct run *r, struct xm_error *err)
{
    struct texts *texts = &r->texts;
    const size_t n = (size_t)r->test->n_parallel;
    texts->list = xm_calloc(n, sizeof(struct xm_sequence *));
    texts->rows = xm_calloc(n, sizeof(*texts->rows));
    if (!texts->list || !texts->rows)
        return xm_no_memory(err, "%zu texts", n);
    XM_TRY(xm_compiled_create_batch(r->compiled, &texts->batch, err));
    for (size_t i = 0; i < n; i++)
        XM_TRY(xm_compiled_create_sequence(r->compiled, &texts->list[i], err));
    return XM_OK;
}

static void
destroy_texts(struct run *r)
{
    struct texts *texts = &r->texts;
    xm_compiled_destroy_batch(texts->batch);
    for (uint64_t i = 0; texts->list && i < r->test->n_parallel; i++)
        xm_compiled_destroy_sequence(texts->list[i]);
    xm_free(texts->list);
    xm_free(texts->rows);
}

int
xm_bench_run(const struct xm_bench_bed *bed, const struct xm_bench_args *a,
             const struct xm_bench_test *t, uint64_t *samples_ns)
{
    const struct xm_bench_result shape = {.n_prompt = t->n_prompt,
                                          .n_gen = t->n_gen,
                                          .n_depth = t->depth,
                                          .n_parallel = t->n_parallel};
    struct xm_error err = {0};
    struct run r = {.args = a, .test = t, .compiled = bed->model.compiled};
    const bool is_one = t->n_parallel == 1;
    xm_bench_test_text(&shape, r.name);
    enum xm_status s =
        find_tokens(&bed->model, tokens_at_once(t) * t->n_parallel, &r.tokens, &err);
    if (s == XM_OK)
        s = is_one ? xm_token_runner_create(r.compiled, &r.runner, &err)
                   : create_texts(&r, &err);
    if (s == XM_OK && !a->no_warmup)
        wait_for_weights(&r);
    if (s == XM_OK) {
        xm_cli_catch_interrupt(is_one ? xm_token_runner_request(r.runner)
                                      : r.texts.batch->control);
        s = time_runs(&r, samples_ns, &err);
        xm_cli_release_interrupt();
    }
    xm_progress_clear();
    xm_token_runner_destroy(r.runner);
    destroy_texts(&r);
    xm_free(r.tokens.ids);
    return s == XM_OK ? XM_EXIT_OK : xm_cli_failed(&err);
}
