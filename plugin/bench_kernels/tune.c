/* SPDX-License-Identifier: Apache-2.0
 *
 * The fastest row of each step for the problems of standard input, kept for later runs
 * (primitives/measured_rows.h). Each row is run through XM_FORCE.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/bench_kernels/bench.h"
#include "plugin/program_util/command_line.h"
#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/interrupt.h"
#include "plugin/program_util/progress.h"
#include "primitives/attention/attention.h"
#include "primitives/device_weight.h"
#include "primitives/measured_rows.h"
#include "primitives/tuning.h"
#include "runtime/driver_files.h"
#include "runtime/dry_run.h"
#include "runtime/util/strbuf.h"

struct options {
    const char *device, *cache_dir;
    bool json;
    uint64_t milliseconds;
};

/* clang-format off */
#define AT(member) offsetof(struct options, member)
static const struct xm_cli_option rows[] = {
    { 'd', "device",    XM_CLI_TEXT, AT(device),    "NAME", "the device" },
    { 0,   "cache-dir", XM_CLI_TEXT, AT(cache_dir), "DIR",  "where the names of rows are kept" },
    { 0,   "milliseconds", XM_CLI_COUNT, AT(milliseconds), "N", "time for each row" },
    { 0,   "json",      XM_CLI_FLAG, AT(json),      NULL,   "one JSON object" },
};
#undef AT
/* clang-format on */
static const struct xm_cli_spec spec = {.usage = "xemoe tune MODEL [options]",
                                        .about = "",
                                        .own = rows,
                                        .n_own = XM_ARRAY_LEN(rows)};

/* The steps that are timed, each with so many tokens. Steps that hand forms to each other are
 * chosen together: the others follow the form of the first one's row. */
enum { FOLLOWERS = 2 };
static const struct tuned_step {
    enum kind kind;
    uint64_t tokens;
    const char *step, *followers[FOLLOWERS];
} steps[] = {
    {BENCH_LINEAR, 1, "linear_few"},
    {BENCH_LINEAR, 64, "linear_many"},
    {BENCH_LINEAR, 512, "linear_long"},
    {BENCH_MOE, 1, "moe_gate_up"},
    {BENCH_MOE, 1, "moe_down"},
    {BENCH_MOE, 512, "moe_gemm_gate_up", {"moe_gather", "moe_gemm_down"}},
    {BENCH_ATTENTION, 1, "attention_decode"},
    {BENCH_ATTENTION, 512, "attention_prompt"},
};

struct tune {
    struct options options;
    struct xm_engine *engine;
    struct bench_report *report;
    bool is_kept; /* so far, all that was found is on disk */
};

static double
seconds_each(const struct tune *t)
{
    return (double)t->options.milliseconds / 1e3;
}

/* One step of one problem. */
struct job {
    const struct tune *tune;
    const struct tuned_step *step;
    struct problem problem;
};

static const struct xm_variant_table *
table_of(const char *step)
{
    size_t n = 0;
    const struct xm_variant_table *all = xm_variant_tables(&n);
    while (n > 0 && strcmp(all[n - 1].step, step) != 0)
        n--;
    return n > 0 ? &all[n - 1] : NULL;
}

/* The row of a follower's table that has the form of `leader`; false: there is none. */
static bool
find_follower(const struct xm_variant_table *table, const struct xm_variant *leader,
              size_t *row)
{
    for (*row = 0; *row < table->n; ++*row) {
        if (table->rows[*row].form == leader->form &&
            table->rows[*row].family == leader->family)
            return true;
    }
    return false;
}

/* "moe_gather=moe_gather_vnni,moe_gemm_gate_up=…": false: a follower has no such row. */
static bool
force_of(const struct tuned_step *step, const struct xm_variant_table *table, size_t row,
         struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%s=%s", table->step, table->rows[row].name);
    for (size_t i = 0; i < FOLLOWERS && step->followers[i]; i++) {
        const struct xm_variant_table *other = table_of(step->followers[i]);
        size_t follower = 0;
        if (!find_follower(other, &table->rows[row], &follower))
            return false;
        xm_strbuf_printf(out, ",%s=%s", other->step, other->rows[follower].name);
    }
    return true;
}

static enum xm_status
time_row(void *ctx, const struct xm_variant_table *table, size_t row, double *seconds,
         struct xm_error *err)
{
    const struct job *job = ctx;
    struct xm_strbuf force = {0};
    char kernels[512];
    enum xm_status s = XM_UNSUPPORTED;
    if (force_of(job->step, table, row, &force)) {
        xm_progress_show("%s: %s", job->problem.text, table->rows[row].name);
        setenv("XM_FORCE", xm_strbuf_text(&force), 1);
        s = xm_bench_problem_time(job->tune->engine, &job->problem,
                                  seconds_each(job->tune), seconds, kernels,
                                  sizeof(kernels), err);
        xm_progress_clear();
    }
    xm_strbuf_free(&force);
    return s;
}

/* ---- what is kept ---------------------------------------------------------------------- */

static struct xm_problem_class
product_class(const struct problem *p, bool is_down)
{
    const bool is_moe = p->kind == BENCH_MOE;
    const struct xm_weight w = {.format = p->format,
                                .element = p->weight,
                                .group = p->group,
                                .experts = is_moe ? p->experts : 1,
                                .rows = !is_moe   ? p->rows
                                        : is_down ? p->hidden
                                                  : p->inter,
                                .cols = !is_moe   ? p->cols
                                        : is_down ? p->inter
                                                  : p->hidden};
    return xm_product_class(&(struct xm_product){&w, p->activations});
}

static struct xm_problem_class
class_of(const struct problem *p, const char *step)
{
    const struct xm_attention_desc desc = {.heads_q = (uint32_t)p->heads_q,
                                           .heads_kv = (uint32_t)p->heads_kv,
                                           .d = (uint32_t)p->head,
                                           .dv = (uint32_t)p->head,
                                           .element = p->activations,
                                           .k_cache = p->weight,
                                           .v_cache = p->weight};
    return p->kind == BENCH_ATTENTION ? xm_attention_class(&desc)
                                      : product_class(p, strstr(step, "down") != NULL);
}

static bool
keep(const struct job *job, const struct xm_variant_table *table, size_t row)
{
    const struct xm_engine *engine = job->tune->engine;
    struct xm_problem_class c = class_of(&job->problem, table->step);
    bool kept = xm_measured_row_keep(engine, table, &c, row);
    for (size_t i = 0; i < FOLLOWERS && job->step->followers[i]; i++) {
        const struct xm_variant_table *other = table_of(job->step->followers[i]);
        size_t follower = 0;
        c = class_of(&job->problem, other->step);
        kept = find_follower(other, &table->rows[row], &follower) &&
               xm_measured_row_keep(engine, other, &c, follower) && kept;
    }
    return kept;
}

static void
report_rows(const struct job *job, const struct xm_variant_table *table,
            const struct xm_timed_rows *timed, bool is_kept)
{
    for (size_t i = 0; i < table->n; i++) {
        if (timed->seconds[i] > 0)
            xm_bench_report_row(job->tune->report, &job->problem, table->step,
                                table->rows[i].name, timed->seconds[i],
                                is_kept && i == timed->best);
    }
}

/* ---- the loop -------------------------------------------------------------------------- */

static enum xm_status
tune_step(struct tune *t, const struct problem *p, const struct tuned_step *step,
          struct xm_error *err)
{
    const struct xm_variant_table *table = table_of(step->step);
    struct job job = {t, step, *p};
    struct xm_timed_rows timed;
    job.problem.tokens = step->tokens;
    snprintf(job.problem.text, sizeof(job.problem.text), "%s: %.90s T=%" PRIu64,
             step->step, p->text, step->tokens);
    const enum xm_status s =
        xm_tune_table(table, xm_engine_info(t->engine), time_row, &job, &timed, err);
    if (s == XM_UNSUPPORTED) {
        *err = (struct xm_error){0};
        return XM_OK; /* the step runs by another table */
    }
    XM_TRY(s);
    xm_bench_report_problem(t->report, &job.problem);
    const bool is_kept = keep(&job, table, timed.best);
    report_rows(&job, table, &timed, is_kept);
    t->is_kept = is_kept && t->is_kept;
    return XM_OK;
}

static enum xm_status
tune_line(void *ctx, const char *line, struct xm_error *err)
{
    struct tune *t = ctx;
    struct xm_strbuf whole = {0};
    struct problem p;
    if (line[strspn(line, " \t\r")] == 0)
        return XM_OK;
    xm_strbuf_printf(&whole, "%s T=1", line);
    enum xm_status s = xm_bench_problem_parse(xm_strbuf_text(&whole), &p, err);
    xm_strbuf_free(&whole);
    snprintf(p.text, sizeof(p.text), "%s", line);
    for (size_t i = 0; i < XM_ARRAY_LEN(steps) && s == XM_OK; i++) {
        if (steps[i].kind == p.kind)
            s = tune_step(t, &p, &steps[i], err);
    }
    return s;
}

static enum xm_status
run(struct tune *t, size_t index, struct xm_error *err)
{
    struct xm_config config;
    if (xm_dry_run())
        return xm_fail(err, XM_UNSUPPORTED,
                       "this is a dry run: nothing is computed, and times mean nothing");
    xm_config_init(&config);
    if (t->options.cache_dir)
        XM_TRY(xm_config_set(&config, "CACHE_DIR", t->options.cache_dir, err));
    XM_TRY(xm_bench_open(index, &config, seconds_each(t), t->options.json, &t->engine,
                         &t->report, err));
    return xm_bench_problems_read(stdin, "the model's steps", tune_line, t, err);
}

int
xm_bench_tune(int argc, char **argv)
{
    struct tune t = {.is_kept = true};
    struct xm_error err = {0};
    bool help = false;
    size_t index = 0;
    if (xm_cli_parse(&spec, argc, argv, &t.options, &help, &err) != XM_OK || help)
        return xm_cli_usage_of(&err, "xemoe tune --help");
    if (t.options.cache_dir)
        (void)xm_driver_files_use(
            t.options.cache_dir); /* before the first device is opened */
    if (!xm_bench_find_device(t.options.device, &index))
        return XM_EXIT_DEVICE;
    xm_cli_watch_interrupt();
    enum xm_status s = run(&t, index, &err);
    if (t.report && s == XM_OK)
        s = xm_bench_report_end(t.report, &err);
    else if (t.report)
        (void)xm_bench_report_end(t.report, NULL);
    xm_engine_unref(t.engine);
    const int flushed = xm_cli_flush();
    if (s == XM_OK && !t.is_kept)
        fprintf(stderr, "xemoe: not every choice could be kept: there is no cache "
                        "folder (--cache-dir), or it cannot be written\n");
    if (s == XM_OK)
        return flushed;
    fprintf(stderr, "xemoe: %s\n", err.text);
    return xm_cli_exit_code(s);
}
