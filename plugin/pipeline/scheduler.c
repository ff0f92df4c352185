/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/scheduler.h"

#include <math.h>

#include "plugin/pipeline/scheduler_parts.h"
#include "runtime/util/clock.h"
#include "runtime/util/number.h"

/* ---- life --------------------------------------------------------------------------------- */

enum xm_status
xm_scheduler_create(struct xm_compiled *compiled, const struct xm_package *package,
                    struct xm_scheduler **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_scheduler *s = xm_calloc(1, sizeof(*s));
    if (!s || pthread_mutex_init(&s->lock, NULL) != 0) {
        xm_free(s);
        return xm_no_memory(err, "texts in parallel");
    }
    s->compiled = compiled;
    xm_compiled_ref(compiled);
    s->package = package;
    s->slots = 1;
    s->end = &s->jobs;
    s->new_end = &s->new_jobs;
    s->next_deadline = INFINITY;
    s->chooser = xm_chooser_create();
    const enum xm_status status = s->chooser
                                      ? xm_compiled_create_batch(compiled, &s->batch, err)
                                      : xm_no_memory(err, "texts in parallel");
    if (status == XM_OK)
        *out = s;
    else
        xm_scheduler_destroy(s);
    return status;
}

void
xm_scheduler_destroy(struct xm_scheduler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->is_closing = true;
    pthread_mutex_unlock(&s->lock);
    xm_scheduler_end_all(s, NULL);
    xm_compiled_destroy_batch(s->batch);
    xm_chooser_free(s->chooser);
    xm_compiled_unref(s->compiled);
    xm_free(s->rows);
    xm_free(s->choices);
    xm_free(s->on_device);
    xm_free(s->choosing);
    xm_free(s->positions);
    pthread_mutex_destroy(&s->lock);
    xm_free(s);
}

struct xm_compiled *
xm_scheduler_compiled(const struct xm_scheduler *s)
{
    return s->compiled;
}

struct xm_infer *
xm_scheduler_request(const struct xm_scheduler *s)
{
    return s->batch->control;
}

uint64_t
xm_scheduler_page(const struct xm_scheduler *s)
{
    return s->batch->page;
}

void
xm_scheduler_set_slots(struct xm_scheduler *s, size_t n)
{
    pthread_mutex_lock(&s->lock);
    s->slots = n;
    pthread_mutex_unlock(&s->lock);
}

void
xm_scheduler_set_prefix_store(struct xm_scheduler *s, struct xm_prefix_store *p)
{
    s->prefixes = p;
}

/* ---- adding jobs, from any thread --------------------------------------------------------- */

static void
append(struct xm_scheduled_job ***end, struct xm_scheduled_job *j)
{
    **end = j;
    *end = &j->next;
}

enum xm_status
xm_scheduler_submit(struct xm_scheduler *s, const struct xm_job *job, uint64_t *id,
                    struct xm_error *err)
{
    struct xm_scheduled_job *j = xm_calloc(1, sizeof(*j));
    if (!j)
        return xm_no_memory(err, "a text");
    j->asked = *job;
    pthread_mutex_lock(&s->lock);
    const bool is_closing = s->is_closing;
    const size_t n_waiting = s->n_jobs > s->slots ? s->n_jobs - s->slots : 0;
    const size_t most = s->slots + job->most_waiting;
    const bool is_taken =
        !is_closing &&
        (!job->most_waiting || (s->n_jobs < most && job->n_more < most - s->n_jobs));
    if (is_taken) {
        j->id = ++s->last_id;
        if (id)
            *id = j->id;
        append(&s->new_end, j);
        s->n_jobs++;
        s->n_waiting++;
    }
    pthread_mutex_unlock(&s->lock);
    if (is_taken)
        return XM_OK;
    xm_free(j);
    if (is_closing)
        return xm_fail(err, XM_CANCELLED,
                       "the scheduler is closing and takes no more texts");
    return xm_fail(err, XM_BUSY, "too many texts: %zu text%s already wait%s", n_waiting,
                   xm_plural(n_waiting), n_waiting == 1 ? "s" : "");
}

static void
cancel_in(struct xm_scheduled_job *list, uint64_t id)
{
    while (list && list->id != id)
        list = list->next;
    if (list)
        xm_flag_set(&list->is_cancelled, true);
}

void
xm_scheduler_cancel(struct xm_scheduler *s, uint64_t id)
{
    pthread_mutex_lock(&s->lock);
    cancel_in(s->jobs, id);
    cancel_in(s->new_jobs, id);
    s->has_cancelled = true;
    pthread_mutex_unlock(&s->lock);
}

/* Moves new jobs to the list of jobs. Returns whether jobs have been cancelled since the last
 * call. */
static bool
take_new_jobs(struct xm_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    const bool has_cancelled = s->has_cancelled;
    const struct xm_scheduled_job *first = s->new_jobs;
    s->has_cancelled = false;
    if (first) {
        *s->end = s->new_jobs;
        s->end = s->new_end;
        s->new_jobs = NULL;
        s->new_end = &s->new_jobs;
    }
    pthread_mutex_unlock(&s->lock);
    for (; first; first = first->next)
        if (first->asked.deadline > 0.0)
            s->next_deadline = fmin(s->next_deadline, first->asked.deadline);
    return has_cancelled;
}

/* ---- ending jobs --------------------------------------------------------------------------- */

/* Removes the job from the list and calls its on_end. */
static void
end_job(struct xm_scheduler *s, struct xm_scheduled_job **at)
{
    struct xm_scheduled_job *j = *at;
    struct xm_error *why = &j->result.error; /* the first cause wins */
    pthread_mutex_lock(&s->lock);
    *at = j->next;
    s->end = *at ? s->end : at;
    s->n_jobs--;
    s->n_waiting -= !j->has_run;
    pthread_mutex_unlock(&s->lock);
    if (j->text.out)
        xm_text_end(&j->text, why);
    if (why->status != XM_OK)
        j->result.finish = XM_FINISH_FAILED;
    j->asked.on_end(&j->result, j->asked.ctx);
    xm_text_free(&j->text);
    xm_generation_result_free(&j->result);
    xm_free(j);
}

/* Ends the jobs that are over. Only jobs that have begun can be, and these come first in the
 * list. */
static void
end_those_over(struct xm_scheduler *s)
{
    struct xm_scheduled_job **at = &s->jobs;
    while (*at && (*at)->has_begun) {
        if ((*at)->state == XM_JOB_OVER)
            end_job(s, at);
        else
            at = &(*at)->next;
    }
}

static void
cancel_job(struct xm_scheduler *s, struct xm_scheduled_job *j)
{
    xm_scheduler_finish_job(s, j);
    j->result.finish = XM_FINISH_CANCELLED;
}

/* Ends cancelled jobs and those whose deadline has passed. */
static void
end_late_jobs(struct xm_scheduler *s, bool has_cancelled)
{
    const double now = s->next_deadline < INFINITY ? xm_now() : 0.0;
    if (!has_cancelled && now < s->next_deadline)
        return;
    s->next_deadline = INFINITY;
    for (struct xm_scheduled_job **at = &s->jobs; *at;) {
        struct xm_scheduled_job *j = *at;
        struct xm_error why = {0};
        const double deadline = j->asked.deadline;
        const bool is_late = deadline > 0.0 && deadline <= now;
        if (xm_flag_get(&j->is_cancelled)) {
            cancel_job(s, j);
        } else if (is_late) {
            xm_fail(&why, XM_CANCELLED,
                    "the deadline has passed after %zu token%s of the text",
                    j->result.ids.n, xm_plural(j->result.ids.n));
            xm_scheduler_fail_job(s, j, &why);
        } else if (deadline > 0.0) {
            s->next_deadline = fmin(s->next_deadline, deadline);
        }
        if (j->state == XM_JOB_OVER)
            end_job(s, at);
        else
            at = &j->next;
    }
}

void
xm_scheduler_end_all(struct xm_scheduler *s, const struct xm_error *why)
{
    take_new_jobs(s);
    while (s->jobs) {
        struct xm_scheduled_job *j = s->jobs;
        if (j->state != XM_JOB_OVER && why)
            xm_scheduler_fail_job(s, j, why);
        else if (j->state != XM_JOB_OVER)
            cancel_job(s, j);
        end_job(s, &s->jobs);
    }
    s->next_deadline = INFINITY;
}

/* ---- steps -------------------------------------------------------------------------------- */

enum xm_status
xm_scheduler_step(struct xm_scheduler *s, struct xm_scheduler_progress *out,
                  struct xm_error *err)
{
    *out = (struct xm_scheduler_progress){0};
    end_late_jobs(s, take_new_jobs(s));
    XM_TRY(xm_scheduler_reserve_rows(s, err));
    xm_scheduler_admit(s);
    XM_TRY(xm_scheduler_run(s, out, err));
    XM_TRY(xm_scheduler_choose(s, out, err));
    end_those_over(s);
    pthread_mutex_lock(&s->lock);
    out->n_jobs = s->n_jobs;
    out->n_waiting = s->n_waiting;
    pthread_mutex_unlock(&s->lock);
    return XM_OK;
}
