/* SPDX-License-Identifier: Apache-2.0
 *
 * Times kernels beside a model that another process runs. The processes communicate through this
 * one's standard input and output (plugin/cli/tuner_process.h):
 *
 *     the other process                    this one
 *     lines of problems, an empty line
 *                                          build K of N   builds variants, at low priority
 *                                          ready          all are built
 *     go                                   row STEP       times variants, for BUDGET_S
 *                                          kept STEP      has stored a choice
 *                                          wrong WHY      tells the user of wrong results
 *                                          left           ends the go; more can be timed
 *                                          done           ends the go; nothing is left to time
 *
 *                                          failed WHY     at any time, as the last line
 *
 * The end of input ends this process. A crash ends it as well, but not the model's process.
 */
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "plugin/bench_kernels/tuner.h"
#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/interrupt.h"
#include "primitives/measured_rows.h"
#include "runtime/driver_files.h"
#include "runtime/dry_run.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

/* Seconds of all runs after one "go", and of one measurement. */
#define BUDGET_S     2.0
#define SECONDS_EACH 0.01

/* Maximum bytes of a step's expert weights, because the model has already taken its memory. */
#define MOST_BYTES (512.0 * 1024 * 1024)

enum { LOW_PRIORITY = 10 };

/* A variant that takes longer to be built or timed hangs. Then SIGALRM ends this process, and the
 * variant's note on disk keeps it from being tried again. No other process would end it if the
 * model's process has ended. */
enum { MOST_S_ROW = 300 };

struct beside {
    struct xm_tuner tuner;
    struct xm_tuner_lock lock;
    struct xm_timed_problem *problems; /* as received: the most valuable first */
    size_t n, capacity;
    size_t built, candidates;
};

/* ---- the other process ------------------------------------------------------------------- */

static void
say(const char *line)
{
    (void)alarm(0);
    puts(line);
    fflush(stdout);
}

/* Reads a line, without its newline. Returns false: the other process has ended. */
static bool
read_line(struct xm_strbuf *line)
{
    char c;
    xm_strbuf_clear(line);
    for (;;) {
        const ssize_t n = read(STDIN_FILENO, &c, 1);
        if (n != 1)
            return false;
        if (c == '\n')
            return xm_strbuf_ok(line);
        xm_strbuf_add_n(line, &c, 1);
    }
}

static bool
has_gone(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* Continues until at least one kernel was compiled, even if the model's process has ended, so that
 * every start makes progress. */
static bool
tell_build(void *ctx, const struct xm_tuner_job *job, const char *row)
{
    struct beside *b = ctx;
    (void)job;
    (void)row;
    printf("build %zu of %zu\n", ++b->built, b->candidates);
    fflush(stdout);
    (void)alarm(MOST_S_ROW);
    return !has_gone() || xm_engine_kernels_built(b->tuner.engine) == 0;
}

static bool
tell_row(void *ctx, const struct xm_tuner_job *job, const char *row)
{
    (void)ctx;
    (void)row;
    printf("row %s\n", job->table->step);
    fflush(stdout);
    (void)alarm(MOST_S_ROW);
    return !has_gone();
}

static void
tell_kept(void *ctx, const struct xm_tuner_job *job, const struct xm_timed_rows *timed,
          bool is_kept)
{
    (void)ctx;
    (void)timed;
    if (!is_kept)
        return;
    printf("kept %s\n", job->table->step);
    fflush(stdout);
}

static void
tell_wrong(void *ctx, const char *sentence)
{
    (void)ctx;
    printf("wrong %s\n", sentence);
    fflush(stdout);
}

static enum xm_status
read_problems(struct beside *b, struct xm_error *err)
{
    struct xm_strbuf line = {0};
    enum xm_status s = XM_OK;
    while (s == XM_OK && read_line(&line) && line.n > 0) {
        struct xm_timed_problem *grown =
            xm_grow(b->problems, &b->capacity, b->n + 1, sizeof(*grown));
        if (!grown) {
            s = xm_no_memory(err, "the steps of a model");
            break;
        }
        b->problems = grown;
        s = xm_timed_problem_parse_step(xm_strbuf_text(&line), &grown[b->n], err);
        b->n += s == XM_OK;
    }
    xm_strbuf_free(&line);
    return s;
}

/* ---- building and timing ----------------------------------------------------------------- */

/* Handles all problems' steps of one token, then those of prompts. Problems that find no memory
 * beside the model are skipped. */
typedef enum xm_status (*problem_fn)(struct xm_tuner *t, const struct xm_timed_problem *p,
                                     bool decodes, struct xm_error *err);
static enum xm_status
each_problem(struct beside *b, problem_fn fn, struct xm_error *err)
{
    for (int prompts = 0; prompts < 2; prompts++) {
        for (size_t i = 0; i < b->n; i++) {
            struct xm_error why = {0};
            const enum xm_status s = fn(&b->tuner, &b->problems[i], !prompts, &why);
            if (s != XM_OK && s != XM_NO_MEMORY)
                return xm_fail(err, s, "%s", why.text);
        }
    }
    return XM_OK;
}

static enum xm_status
build(struct beside *b, struct xm_error *err)
{
    for (size_t i = 0; i < b->n; i++)
        b->candidates += xm_tuner_candidates(&b->tuner, &b->problems[i]);
    b->tuner.goes_on = tell_build;
    return each_problem(b, xm_tuner_build, err);
}

/* Handles one "go" after the other. */
static enum xm_status
serve(struct beside *b, struct xm_error *err)
{
    struct xm_strbuf line = {0};
    enum xm_status s = XM_CANCELLED;
    b->tuner.goes_on = tell_row;
    while (s == XM_CANCELLED && read_line(&line)) {
        b->tuner.spent = 0;
        *err = (struct xm_error){0};
        s = each_problem(b, xm_tuner_run, err);
        if (s == XM_OK || s == XM_CANCELLED)
            say(s == XM_OK ? "done" : "left");
    }
    xm_strbuf_free(&line);
    return s;
}

static enum xm_status
run(struct beside *b, size_t device, const char *cache_dir, struct xm_error *err)
{
    struct xm_config config;
    if (xm_dry_run())
        return xm_fail(err, XM_UNSUPPORTED, "times of a dry run mean nothing");
    xm_config_init(&config);
    XM_TRY(xm_config_set(&config, "CACHE_DIR", cache_dir, err));
    XM_TRY(read_problems(b, err));
    XM_TRY(xm_engine_create(device, &config, &b->tuner.engine, err));
    xm_row_trials_open(b->tuner.engine);
    XM_TRY(build(b, err));
    say("ready");
    return serve(b, err);
}

int
xm_bench_tune_beside(const char *device, const char *cache_dir)
{
    struct beside b = {.tuner = {.seconds = SECONDS_EACH,
                                 .budget = BUDGET_S,
                                 .most_bytes = MOST_BYTES,
                                 .only_unsettled = true,
                                 .found = tell_kept,
                                 .wrong = tell_wrong},
                       .lock = {.file = -1}};
    struct xm_error err = {0};
    size_t index = 0;
    b.tuner.ctx = &b;
    /* before the driver creates threads, which inherit the priority */
    (void)setpriority(PRIO_PROCESS, 0, LOW_PRIORITY);
    if (!xm_bench_find_device(device, &index))
        return XM_EXIT_DEVICE;
    xm_cli_watch_interrupt();
    (void)signal(SIGPIPE, SIG_IGN); /* the other process may end at any time */
    (void)signal(SIGALRM, SIG_DFL); /* it may be ignored in the parent process */
    enum xm_status s =
        xm_tuner_try_lock(cache_dir, &b.lock)
            ? run(&b, index, cache_dir, &err)
            : xm_fail(&err, XM_IO, "%s",
                      b.lock.is_taken ? "another process measures kernels"
                                      : "the cache folder cannot be written");
    xm_engine_unref(b.tuner.engine);
    xm_tuner_unlock(&b.lock);
    xm_free(b.problems);
    if (s == XM_OK || s == XM_CANCELLED)
        return XM_EXIT_OK;
    printf("failed %s\n", err.text);
    (void)fflush(stdout);
    return xm_cli_exit_code(s);
}
