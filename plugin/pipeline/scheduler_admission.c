/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/scheduler_parts.h"

/* ---- shared beginnings of jobs -------------------------------------------------------------- */

/* Sets the job's leader to the older job, still in prefill, that computes the most tokens which
 * this one needs too. Only whole pages are shared, and at least one token is left to run, unless
 * all tokens are equal. */
static void
find_leader(const struct xm_scheduler *s, struct xm_scheduled_job *j)
{
    const struct xm_token_list *t = &j->text.tokens;
    j->leader = NULL;
    j->shared = 0;
    j->is_fork = false;
    for (struct xm_scheduled_job *l = xm_first_running(s); l; l = xm_next_running(l)) {
        if (l->id >= j->id)
            break;
        const uint64_t same =
            xm_same_tokens(l->text.tokens.ids, l->text.tokens.n, t->ids, t->n);
        const bool is_fork = same == t->n && same == l->text.tokens.n;
        const uint64_t most = same < t->n ? same : t->n - 1;
        const uint64_t shared = is_fork ? t->n : most - most % s->batch->page;
        if (!l->in_prefill || xm_job_past(l) >= shared || shared <= j->shared)
            continue;
        j->leader = l;
        j->shared = shared;
        j->is_fork = is_fork;
    }
}

bool
xm_job_waits_for_leader(struct xm_scheduled_job *j)
{
    if (j->leader && (j->is_fork || xm_job_past(j->leader) < j->shared))
        return true;
    j->leader = NULL;
    return false;
}

void
xm_scheduler_fork_jobs(struct xm_scheduler *s)
{
    for (struct xm_scheduled_job *j = xm_first_running(s); j; j = xm_next_running(j)) {
        const struct xm_scheduled_job *l = j->leader;
        if (!l || !j->is_fork || !l->has_logits)
            continue;
        j->leader = NULL;
        if (xm_compiled_fork_sequence(l->sequence, &j->sequence, NULL) != XM_OK) {
            j->shared = 0;
            continue;
        }
        j->result.reused = j->is_again ? j->result.reused : j->text.n_prompt;
        j->row = l->row;
        j->in_prefill = false;
        j->has_logits = true;
    }
}

/* ---- admission ---------------------------------------------------------------------------- */

/* Takes the slot and the pages from a job. Jobs whose leader it was search for another. */
static void
leave_slot(struct xm_scheduler *s, struct xm_scheduled_job *j, enum xm_job_state state)
{
    const bool had_slot = j->state == XM_JOB_RUNS;
    j->state = state;
    j->has_logits = false;
    if (!had_slot)
        return;
    s->n_running--;
    xm_compiled_destroy_sequence(j->sequence);
    j->sequence = NULL;
    for (struct xm_scheduled_job *k = xm_first_running(s); k; k = xm_next_running(k))
        if (k->leader == j)
            find_leader(s, k);
}

/* Saves what a text has computed, even if it was cancelled, because another text may begin with
 * it. */
static void
keep_prefix(struct xm_scheduler *s, struct xm_scheduled_job *j)
{
    const struct xm_token_list *t = &j->text.tokens;
    if (s->prefixes && j->sequence && j->result.error.status == XM_OK)
        xm_prefix_store_save(s->prefixes, j->sequence, t->ids, t->n);
}

void
xm_scheduler_finish_job(struct xm_scheduler *s, struct xm_scheduled_job *j)
{
    xm_scheduler_stop_ahead(s, j);
    keep_prefix(s, j);
    if (j->sequence || j == s->blocked)
        s->blocked = NULL;
    leave_slot(s, j, XM_JOB_OVER);
}

void
xm_scheduler_fail_job(struct xm_scheduler *s, struct xm_scheduled_job *j,
                      const struct xm_error *why)
{
    xm_fail(&j->result.error, why->status, "%s", why->text);
    xm_scheduler_finish_job(s, j);
}

static enum xm_status
begin_text(const struct xm_scheduler *s, struct xm_scheduled_job *j, struct xm_error *err)
{
    const struct xm_text_source from = {s->package, &j->asked.asked, &j->asked.sampling,
                                        NULL};
    const struct xm_error *refused = j->asked.refused;
    if (refused && refused->status != XM_OK)
        return xm_fail(err, refused->status, "%s", refused->text);
    if (j->asked.n_prompt == 0)
        return xm_fail(err, XM_INVALID, "the prompt is empty");
    return xm_text_begin(&j->text, &from, j->asked.prompt, j->asked.n_prompt, &j->result,
                         err);
}

/* Returns the first waiting job, and begins its text; NULL: no job waits. */
static struct xm_scheduled_job *
first_waiting(struct xm_scheduler *s)
{
    for (struct xm_scheduled_job *j = s->jobs; j; j = j->next) {
        struct xm_error why = {0};
        if (j->state != XM_JOB_WAITS)
            continue;
        if (j->has_begun)
            return j;
        j->has_begun = true;
        if (begin_text(s, j, &why) != XM_OK)
            xm_scheduler_fail_job(s, j, &why);
        else if (j->text.is_over)
            xm_scheduler_finish_job(s, j);
        else
            xm_scheduler_prepare(s, &j->text);
        if (j->state == XM_JOB_WAITS)
            return j;
    }
    return NULL;
}

/* Returns the number of positions that the job will need until it has its next token, without those
 * that it holds or that its leader computes. */
static uint64_t
need_of(const struct xm_scheduled_job *j)
{
    return xm_job_rest(j) - (j->sequence ? 0 : j->shared) + 1;
}

/* Whether the cache has room for the job beside the running ones, each of which may need another
 * page. A job that would run alone is always tried, so that the device reports why it has no
 * room. */
static bool
has_room(struct xm_scheduler *s, const struct xm_scheduled_job *j)
{
    size_t n = 0;
    if (s->n_running == 0 || s->blocked || !s->compiled->ops->has_room)
        return s->n_running == 0 || !s->blocked;
    for (struct xm_scheduled_job *k = xm_first_running(s); k; k = xm_next_running(k))
        s->positions[n++] = need_of(k);
    s->positions[n++] = need_of(j);
    return s->compiled->ops->has_room(s->compiled, s->positions, n);
}

void
xm_scheduler_admit(struct xm_scheduler *s)
{
    struct xm_scheduled_job *j;
    while (s->n_running < s->slots && (j = first_waiting(s))) {
        find_leader(s, j);
        s->blocked = has_room(s, j) ? NULL : j;
        if (s->blocked)
            return;
        j->state = XM_JOB_RUNS;
        j->in_prefill = true;
        j->is_again = j->has_run;
        s->n_running++;
        if (!j->has_run) {
            pthread_mutex_lock(&s->lock);
            s->n_waiting--;
            pthread_mutex_unlock(&s->lock);
        }
        j->has_run = true;
    }
}

void
xm_scheduler_preempt(struct xm_scheduler *s, const struct xm_error *why)
{
    struct xm_scheduled_job *newest = NULL;
    size_t n_holders = 0;
    for (struct xm_scheduled_job *j = xm_first_running(s); j; j = xm_next_running(j)) {
        n_holders += j->sequence != NULL;
        newest = j->sequence ? j : newest;
    }
    if (n_holders == 1) {
        newest->result.no_room = true;
        xm_scheduler_fail_job(s, newest, why);
    } else {
        leave_slot(s, newest, XM_JOB_WAITS);
        s->blocked = newest;
    }
}
