/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects each variant with XM_FORCE. All variants of a step run on the same random weights, and
 * their results are compared.
 */
#include "plugin/bench_kernels/tuner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "primitives/measured_rows.h"
#include "runtime/counting/counting.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

/* ---- the lock -------------------------------------------------------------------------- */

static bool
lock_file(const char *folder, int how, struct xm_tuner_lock *lock)
{
    struct xm_strbuf path = {0};
    xm_strbuf_printf(&path, "%s/tuning.lock", folder);
    lock->file = folder[0] && xm_strbuf_ok(&path)
                     ? open(xm_strbuf_text(&path), O_RDWR | O_CREAT | O_CLOEXEC, 0600)
                     : -1;
    xm_strbuf_free(&path);
    int locked = -1;
    while (lock->file >= 0 && (locked = flock(lock->file, how)) != 0 && errno == EINTR) {
    }
    lock->is_taken = lock->file >= 0 && locked != 0 && errno == EWOULDBLOCK;
    if (locked != 0)
        xm_tuner_unlock(lock);
    return locked == 0;
}

bool
xm_tuner_try_lock(const char *folder, struct xm_tuner_lock *lock)
{
    return lock_file(folder, LOCK_EX | LOCK_NB, lock);
}

bool
xm_tuner_wait_lock(const char *folder, struct xm_tuner_lock *lock)
{
    return lock_file(folder, LOCK_EX, lock);
}

void
xm_tuner_unlock(struct xm_tuner_lock *lock)
{
    if (lock->file >= 0)
        close(lock->file);
    lock->file = -1;
}

/* ---- variants that are chosen together ----------------------------------------------------- */

/* Finds the variant of a follower's table with the same form as `leader`. Returns false: there is
 * none. */
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

/* Writes "moe_gather=moe_gather_vnni,moe_gemm_gate_up=…" to XM_FORCE. Returns false: a follower has
 * no such variant. */
static bool
force(const struct xm_tuner_job *job, size_t row)
{
    struct xm_strbuf text = {0};
    const struct xm_variant *leader = &job->table->rows[row];
    bool good = true;
    xm_strbuf_printf(&text, "%s=%s", job->table->step, leader->name);
    for (size_t i = 0; i < XM_TIMED_FOLLOWERS && job->step->followers[i].step && good;
         i++) {
        const struct xm_variant_table *other =
            xm_timed_table(job->step->followers[i].step);
        size_t follower = 0;
        good = find_follower(other, leader, &follower);
        if (good)
            xm_strbuf_printf(&text, ",%s=%s", other->step, other->rows[follower].name);
    }
    good =
        good && xm_strbuf_ok(&text) && setenv("XM_FORCE", xm_strbuf_text(&text), 1) == 0;
    xm_strbuf_free(&text);
    return good;
}

static bool
keep(const struct xm_engine *engine, const struct xm_tuner_job *job, size_t row)
{
    struct xm_problem_class c = xm_timed_class(&job->problem, job->step->is_down);
    bool kept = true;
    for (size_t i = 0; i < XM_TIMED_FOLLOWERS && job->step->followers[i].step; i++) {
        const struct xm_timed_follower *f = &job->step->followers[i];
        const struct xm_variant_table *other = xm_timed_table(f->step);
        const struct xm_problem_class theirs = xm_timed_class(&job->problem, f->is_down);
        size_t follower = 0;
        kept = find_follower(other, &job->table->rows[row], &follower) &&
               xm_measured_row_keep(engine, other, &theirs, follower) && kept;
    }
    /* Last, because it marks the step as settled. */
    return xm_measured_row_keep(engine, job->table, &c, row) && kept;
}

/* ---- jobs ------------------------------------------------------------------------------ */

void
xm_tuner_reduce(struct xm_timed_problem *p, double most)
{
    struct xm_timed_problem token = *p;
    token.tokens = 1;
    if (p->kind != XM_TIMED_MOE)
        return;
    const double one = xm_timed_problem_bytes(&token) / (double)p->top_k;
    const uint64_t least = 2 * p->top_k;
    if (one * (double)p->experts <= most || p->experts <= least)
        return;
    const uint64_t room = (uint64_t)(most / one), experts = room > least ? room : least;
    if (p->tokens > 1)
        p->tokens = (p->tokens * experts + p->experts - 1) / p->experts;
    p->experts = experts;
}

static struct xm_tuner_job
job_of(const struct xm_tuner *t, const struct xm_timed_problem *p,
       const struct xm_timed_step *step)
{
    struct xm_tuner_job job = {step, xm_timed_table(step->step), *p, *p};
    job.problem.tokens = step->tokens;
    snprintf(job.problem.text, sizeof(job.problem.text), "%s: %.90s T=%" PRIu64,
             step->step, p->text, step->tokens);
    job.timed = job.problem;
    xm_tuner_reduce(&job.timed, t->most_bytes);
    return job;
}

/* Called for each step of the problem's kind that is to be timed. */
typedef enum xm_status (*job_fn)(void *ctx, const struct xm_tuner_job *job,
                                 struct xm_error *err);
static enum xm_status
each_job(const struct xm_tuner *t, const struct xm_timed_problem *p, bool decodes,
         job_fn run, void *ctx, struct xm_error *err)
{
    size_t n;
    const struct xm_timed_step *steps = xm_timed_steps(&n);
    for (size_t i = 0; i < n; i++) {
        if (steps[i].kind != p->kind || (steps[i].tokens == 1) != decodes)
            continue;
        const struct xm_problem_class c = xm_timed_class(p, steps[i].is_down);
        const struct xm_tuner_job job = job_of(t, p, &steps[i]);
        if (!t->only_unsettled || !xm_measured_row_is_settled(t->engine, job.table, &c))
            XM_TRY(run(ctx, &job, err));
    }
    return XM_OK;
}

/* Whether the results of the variants are compared with those of the reference from the start: for
 * single tokens on a GPU, where the reference is fast. */
static bool
begins_with_reference(const struct xm_tuner *t, const struct xm_tuner_job *job)
{
    return xm_engine_info(t->engine)->kind == XM_DEVICE_GPU && job->timed.tokens == 1;
}

static bool
goes_on(const struct xm_tuner *t, const struct xm_tuner_job *job, size_t row)
{
    return !t->goes_on || t->goes_on(t->ctx, job, job->table->rows[row].name);
}

/* ---- timing ---------------------------------------------------------------------------- */

/* The job whose variants are being timed, and the results with which theirs are compared: those of
 * the reference, or of the first variant until one disagrees with it. */
struct timing {
    struct xm_tuner *tuner;
    const struct xm_tuner_job *job;
    struct xm_bench *bench;
    float *expected; /* [n]; NULL: none yet */
    uint64_t n;
    bool are_reference, disagree;
    uint32_t wrong; /* rows that have computed wrong results, one bit each */
};

static enum xm_status
expect_results(struct timing *g, const float *results, uint64_t n, struct xm_error *err)
{
    float *grown = xm_realloc(g->expected, (size_t)n * sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "the results of a kernel");
    memcpy(grown, results, (size_t)n * sizeof(*grown));
    g->expected = grown;
    g->n = n;
    return XM_OK;
}

/* Expects the results of the reference, if the step has one that can run. */
static enum xm_status
run_reference(struct timing *g, struct xm_error *err)
{
    const struct xm_variant_table *table = g->job->table;
    const double start = xm_now();
    struct xm_error ignored = {0};
    uint64_t rows, cols;
    size_t row = 0;
    while (row < table->n && table->rows[row].family != XM_FAMILY_ANY)
        row++;
    if (row == table->n || !goes_on(g->tuner, g->job, row) || !force(g->job, row) ||
        xm_bench_run(g->bench, &ignored) != XM_OK)
        return XM_OK;
    g->tuner->spent += xm_now() - start;
    const float *results = xm_bench_results(g->bench, &rows, &cols);
    g->are_reference = results != NULL;
    return results ? expect_results(g, results, rows * cols, err) : XM_OK;
}

static void
note_wrong(struct timing *g, size_t row)
{
    const struct xm_tuner *t = g->tuner;
    const struct xm_variant_table *table = g->job->table;
    char sentence[512];
    g->wrong |= 1u << row;
    const bool is_kept = xm_row_keep_wrong(t->engine, table, row);
    snprintf(sentence, sizeof(sentence),
             "kernel '%s' computes wrong results on %s%s; please report it with the "
             "output of 'xemoe selftest'",
             table->rows[row].name, xm_engine_info(t->engine)->name,
             is_kept ? "; other kernels are used from the next start on" : "");
    if (t->wrong)
        t->wrong(t->ctx, sentence);
}

/* Handles a variant that has written no results. If the reference writes none either, the device
 * computes nothing: XM_DEVICE. */
static enum xm_status
blame(struct timing *g, size_t row, struct xm_error *err)
{
    if (!g->are_reference && g->job->table->rows[row].family != XM_FAMILY_ANY)
        XM_TRY(run_reference(g, err));
    if (!g->are_reference)
        return XM_DEVICE; /* with the message of xm_bench_time */
    g->disagree = true;
    note_wrong(g, row);
    return xm_fail(err, XM_UNSUPPORTED, "the kernel writes no results");
}

/* Compares the results of a variant that has run. XM_UNSUPPORTED: they are wrong, or differ from
 * those of a variant that may be wrong itself. */
static enum xm_status
judge(struct timing *g, size_t row, struct xm_error *err)
{
    uint64_t rows, cols;
    const float *results = xm_bench_results(g->bench, &rows, &cols);
    if (!results)
        return XM_OK;
    if (!g->expected)
        return expect_results(g, results, rows * cols, err);
    if (xm_bench_results_agree(results, g->expected, rows, cols))
        return XM_OK;
    g->disagree = true;
    if (g->are_reference && g->job->table->rows[row].family != XM_FAMILY_ANY)
        note_wrong(g, row);
    return xm_fail(err, XM_UNSUPPORTED, "the kernel computes other results than another");
}

static enum xm_status
time_row(void *ctx, const struct xm_variant_table *table, size_t row, double hopeless,
         double *seconds, struct xm_error *err)
{
    struct timing *g = ctx;
    struct xm_tuner *t = g->tuner;
    struct xm_row_trial trial;
    struct xm_bench_result result;
    if (xm_row_trial_is_lost(t->engine, table, row))
        return xm_fail(err, XM_UNSUPPORTED, "a process ended while it timed this kernel");
    if ((g->wrong >> row & 1) || xm_row_is_wrong(t->engine, table, row))
        return xm_fail(err, XM_UNSUPPORTED, "this kernel has computed wrong results");
    if (!(t->budget > t->spent) || !goes_on(t, g->job, row))
        return xm_fail(err, XM_CANCELLED, "the time for measuring is over");
    if (!force(g->job, row))
        return XM_UNSUPPORTED;
    xm_row_trial_begin(t->engine, table, row, &trial);
    const enum xm_status s = xm_bench_time(g->bench, t->seconds, hopeless, &result, err);
    xm_row_trial_end(&trial);
    t->spent += result.spent;
    *seconds = result.best;
    if (result.wrote_nothing)
        return blame(g, row, err);
    return s == XM_OK ? judge(g, row, err) : s;
}

/* Times the variants of the job. If their results disagree, starts again with those of the
 * reference, which tell who is wrong. */
static enum xm_status
time_rows(struct timing *g, struct xm_timed_rows *timed, struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(g->tuner->engine);
    if (begins_with_reference(g->tuner, g->job))
        XM_TRY(run_reference(g, err));
    const bool is_final = g->are_reference;
    const enum xm_status s =
        xm_tune_table(g->job->table, device, time_row, g, timed, err);
    if (!g->disagree || is_final || (s != XM_OK && s != XM_UNSUPPORTED))
        return s;
    if (!g->are_reference)
        XM_TRY(run_reference(g, err));
    if (!g->are_reference)
        return s;
    *err = (struct xm_error){0};
    return xm_tune_table(g->job->table, device, time_row, g, timed, err);
}

/* Stores the outcome. If no variant could be timed, because the step runs by another table, stores
 * that there is no choice. */
static enum xm_status
settle(struct xm_tuner *t, const struct xm_tuner_job *job,
       const struct xm_timed_rows *timed, enum xm_status s, struct xm_error *err)
{
    const struct xm_problem_class c = xm_timed_class(&job->problem, job->step->is_down);
    if (s == XM_OK) {
        const bool is_kept = keep(t->engine, job, timed->best);
        if (t->found)
            t->found(t->ctx, job, timed, is_kept);
        return XM_OK;
    }
    if (s != XM_UNSUPPORTED)
        return s;
    *err = (struct xm_error){0};
    (void)xm_measured_row_keep_none(t->engine, job->table, &c);
    return XM_OK;
}

static enum xm_status
run_job(void *ctx, const struct xm_tuner_job *job, struct xm_error *err)
{
    struct xm_tuner *t = ctx;
    struct timing g = {.tuner = t, .job = job};
    struct xm_timed_rows timed;
    const bool is_first = t->spent == 0;
    enum xm_status s = xm_bench_create(t->engine, &job->timed, &g.bench, err);
    if (s == XM_OK) {
        s = time_rows(&g, &timed, err);
        /* the next budget would be used up by this step too, so that later steps would never be
         * timed */
        if (s == XM_CANCELLED && is_first && t->spent > 0 && t->spent >= t->budget)
            s = XM_UNSUPPORTED;
        s = settle(t, job, &timed, s, err);
    }
    xm_bench_destroy(g.bench);
    xm_free(g.expected);
    unsetenv("XM_FORCE");
    return s;
}

enum xm_status
xm_tuner_run(struct xm_tuner *t, const struct xm_timed_problem *p, bool decodes,
             struct xm_error *err)
{
    return each_job(t, p, decodes, run_job, t, err);
}

/* ---- building -------------------------------------------------------------------------- */

/* Whether the variant will be run. The reference is timed only if nothing else can run. */
static bool
is_candidate(const struct xm_tuner *t, const struct xm_tuner_job *job, size_t row)
{
    return (job->table->rows[row].family != XM_FAMILY_ANY ||
            begins_with_reference(t, job)) &&
           xm_tuning_takes(&job->table->rows[row], xm_engine_info(t->engine)) &&
           !xm_row_trial_is_lost(t->engine, job->table, row);
}

/* Builds the kernels of one variant, which it finds on an engine without memory. A variant that
 * such an engine cannot run belongs to a library, which builds its kernels when they are timed. */
static enum xm_status
build_row(struct xm_tuner *t, const struct xm_tuner_job *job, struct xm_error *err)
{
    struct xm_engine *counted = NULL;
    struct xm_bench *bench = NULL;
    struct xm_error ignored = {0};
    enum xm_status s = xm_counting_engine_create(
        xm_engine_info(t->engine), xm_engine_config(t->engine), &counted, err);
    if (s == XM_OK)
        s = xm_bench_create(counted, &job->timed, &bench, err);
    const bool is_found = s == XM_OK && xm_bench_build(bench, &ignored) == XM_OK;
    xm_bench_destroy(bench);
    if (is_found)
        s = xm_counting_build(counted, t->engine, err);
    xm_engine_unref(counted);
    return s;
}

static enum xm_status
build_job(void *ctx, const struct xm_tuner_job *job, struct xm_error *err)
{
    struct xm_tuner *t = ctx;
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < job->table->n && s == XM_OK; i++) {
        struct xm_error why = {0};
        struct xm_row_trial trial;
        if (!is_candidate(t, job, i))
            continue;
        if (!goes_on(t, job, i)) {
            s = xm_fail(err, XM_CANCELLED, "the time for building is over");
            break;
        }
        if (!force(job, i))
            continue;
        xm_row_trial_begin(t->engine, job->table, i, &trial);
        s = build_row(t, job, &why);
        xm_row_trial_end(&trial);
        if (s == XM_UNSUPPORTED || s == XM_NOT_BUILT)
            s = XM_OK; /* the variant cannot run the problem */
        else if (s != XM_OK)
            xm_fail(err, s, "%s", why.text);
    }
    unsetenv("XM_FORCE");
    return s;
}

enum xm_status
xm_tuner_build(struct xm_tuner *t, const struct xm_timed_problem *p, bool decodes,
               struct xm_error *err)
{
    return each_job(t, p, decodes, build_job, t, err);
}

/* Arguments of count_job. */
struct count {
    const struct xm_tuner *tuner;
    size_t n;
};

static enum xm_status
count_job(void *ctx, const struct xm_tuner_job *job, struct xm_error *err)
{
    struct count *c = ctx;
    (void)err;
    for (size_t i = 0; i < job->table->n; i++)
        c->n += is_candidate(c->tuner, job, i);
    return XM_OK;
}

size_t
xm_tuner_candidates(const struct xm_tuner *t, const struct xm_timed_problem *p)
{
    struct count c = {t, 0};
    (void)each_job(t, p, true, count_job, &c, NULL);
    (void)each_job(t, p, false, count_job, &c, NULL);
    return c.n;
}
