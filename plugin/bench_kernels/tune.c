/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the fastest variant of each step of the problems on standard input, and stores it for later
 * runs.
 */
#include <math.h>
#include <string.h>

#include "plugin/bench_kernels/tuner.h"
#include "plugin/program_util/command_line.h"
#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/interrupt.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "primitives/measured_rows.h"
#include "runtime/driver_files.h"
#include "runtime/dry_run.h"

struct options {
    const char *device, *cache_dir;
    bool json, beside;
    uint64_t milliseconds;
};

/* clang-format off */
#define AT(member) offsetof(struct options, member)
static const struct xm_cli_option rows[] = {
    { 'd', "device",    XM_CLI_WORD, AT(device),    "NAME", "the device" },
    { 0,   "cache-dir", XM_CLI_WORD, AT(cache_dir), "DIR",  "where the names of kernels are kept" },
    { 0,   "milliseconds", XM_CLI_COUNT, AT(milliseconds), "N", "seconds for each kernel" },
    { 0,   "json",      XM_CLI_FLAG, AT(json),      NULL,   "print one JSON object" },
    { 0,   "beside",    XM_CLI_FLAG, AT(beside),    NULL,   "for another process (tune_beside.c)" },
};
#undef AT
/* clang-format on */
static const struct xm_cli_spec spec = {.usage = "xemoe tune MODEL [options]",
                                        .about = "",
                                        .own = rows,
                                        .n_own = XM_ARRAY_LEN(rows)};

struct tune {
    struct options options;
    struct xm_tuner tuner;
    struct xm_tuner_lock lock;
    struct bench_report *report;
    bool is_kept; /* everything found so far is on disk */
};

static double
seconds_each(const struct tune *t)
{
    return (double)t->options.milliseconds / 1e3;
}

static bool
show_row(void *ctx, const struct xm_tuner_job *job, const char *row)
{
    (void)ctx;
    xm_progress_show("%s: %s", job->problem.text, row);
    return true;
}

static void
report_rows(void *ctx, const struct xm_tuner_job *job, const struct xm_timed_rows *timed,
            bool is_kept)
{
    struct tune *t = ctx;
    xm_progress_clear();
    xm_bench_report_problem(t->report, &job->problem);
    for (size_t i = 0; i < job->table->n; i++) {
        if (timed->seconds[i] > 0)
            xm_bench_report_row(t->report, &job->problem, job->table->step,
                                job->table->rows[i].name, timed->seconds[i],
                                is_kept && i == timed->best);
    }
    t->is_kept = is_kept && t->is_kept;
}

static void
warn(void *ctx, const char *sentence)
{
    (void)ctx;
    xm_progress_clear();
    xm_say("%s", sentence);
}

/* ---- the loop -------------------------------------------------------------------------- */

static enum xm_status
tune_line(void *ctx, const char *line, struct xm_error *err)
{
    struct tune *t = ctx;
    struct xm_timed_problem p;
    if (line[strspn(line, " \t\r")] == 0)
        return XM_OK;
    XM_TRY(xm_timed_problem_parse_step(line, &p, err));
    enum xm_status s = xm_tuner_run(&t->tuner, &p, true, err);
    if (s == XM_OK)
        s = xm_tuner_run(&t->tuner, &p, false, err);
    xm_progress_clear();
    return s;
}

/* Waits for other processes that time kernels, because they would disturb the times. */
static void
take_turn(struct tune *t)
{
    const char *folder = t->options.cache_dir;
    if (!folder || xm_tuner_try_lock(folder, &t->lock) || !t->lock.is_taken)
        return;
    xm_progress_show("waiting for another process that measures kernels");
    (void)xm_tuner_wait_lock(folder, &t->lock);
    xm_progress_clear();
}

static enum xm_status
run(struct tune *t, size_t index, struct xm_error *err)
{
    struct xm_config config;
    if (xm_dry_run())
        return xm_fail(err, XM_UNSUPPORTED,
                       "this is a dry run: nothing is computed, so times mean nothing");
    xm_config_init(&config);
    if (t->options.cache_dir)
        XM_TRY(xm_config_set(&config, "CACHE_DIR", t->options.cache_dir, err));
    if (!t->options.cache_dir || !xm_driver_files_may_store())
        fprintf(stderr, "xemoe: the choices will not be kept: %s\n",
                t->options.cache_dir ? "the cache folder cannot be written"
                                     : "there is no cache folder (--cache-dir)");
    take_turn(t);
    XM_TRY(xm_bench_open(index, &config, seconds_each(t), t->options.json,
                         &t->tuner.engine, &t->report, err));
    xm_row_trials_open(t->tuner.engine);
    return xm_bench_problems_read(stdin, "the model's steps", tune_line, t, err);
}

int
xm_bench_tune(int argc, char **argv)
{
    struct tune t = {.tuner = {.budget = INFINITY,
                               .most_bytes = INFINITY,
                               .goes_on = show_row,
                               .found = report_rows,
                               .wrong = warn,
                               .ctx = &t},
                     .lock = {.file = -1},
                     .is_kept = true};
    struct xm_error err = {0};
    bool help = false;
    size_t index = 0;
    if (xm_cli_parse(&spec, argc, argv, &t.options, &help, &err) != XM_OK || help)
        return xm_cli_usage_of(&err, "xemoe tune --help");
    if (t.options.cache_dir)
        (void)xm_driver_files_use(
            t.options.cache_dir); /* before the first device is opened */
    if (t.options.beside)
        return xm_bench_tune_beside(t.options.device,
                                    t.options.cache_dir ? t.options.cache_dir : "");
    if (!xm_bench_find_device(t.options.device, &index))
        return XM_EXIT_DEVICE;
    xm_cli_watch_interrupt();
    t.tuner.seconds = seconds_each(&t);
    enum xm_status s = run(&t, index, &err);
    if (t.report && s == XM_OK)
        s = xm_bench_report_end(t.report, &err);
    else if (t.report)
        (void)xm_bench_report_end(t.report, NULL);
    xm_engine_unref(t.tuner.engine);
    xm_tuner_unlock(&t.lock);
    const int flushed = xm_cli_flush();
    if (s == XM_OK && !t.is_kept && t.options.cache_dir && xm_driver_files_may_store())
        fprintf(stderr, "xemoe: not every choice could be kept in the cache folder\n");
    if (s == XM_OK)
        return flushed;
    fprintf(stderr, "xemoe: %s\n", err.text);
    return xm_cli_exit_code(s);
}
