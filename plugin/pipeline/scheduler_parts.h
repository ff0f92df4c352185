/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the scheduler, for scheduler*.c only.
 *
 *     scheduler.c            jobs come and go; a step
 *     scheduler_admission.c  which jobs run, what they share, who gives up its pages
 *     scheduler_run.c        one run of all, and the tokens that are chosen from it, by the host or
 *                            the device
 */
#ifndef XM_PLUGIN_PIPELINE_SCHEDULER_PARTS_H
#define XM_PLUGIN_PIPELINE_SCHEDULER_PARTS_H

#include <pthread.h>

#include "plugin/pipeline/chooser.h"
#include "plugin/pipeline/prefix_store.h"
#include "plugin/pipeline/scheduler.h"
#include "plugin/pipeline/text.h"

enum xm_job_state {
    XM_JOB_WAITS, /* for admission, the first time or because it gave up its pages */
    XM_JOB_RUNS,  /* has a slot                                                   */
    XM_JOB_OVER   /* the end of the step ends it                                   */
};

struct xm_scheduled_job {
    struct xm_job asked;
    uint64_t id;
    struct xm_scheduled_job *next; /* of its list; written under the lock */
    bool is_cancelled;             /* xm_flag_get; any thread sets it     */
    /* The rest belongs to the thread that steps. */
    struct xm_generation_result result; /* its error: why the job fails */
    enum xm_job_state state;
    bool has_begun;         /* its text                */
    bool has_run, is_again; /* it was admitted; for the second time or later */
    struct xm_text text;
    struct xm_sequence *sequence; /* NULL: it holds no pages                     */
    bool in_prefill; /* of its prompt, or of the tokens that it computes again */
    /* The job that computes the first `shared` tokens of this one, too, which waits for them; NULL:
     * nobody does. is_fork: all of them, so that this one reads the same row of logits. */
    const struct xm_scheduled_job *leader;
    uint64_t shared;
    bool is_fork;
    uint64_t n_fed; /* tokens of it in this run       */
    uint32_t row;   /* of the run that has its logits */
    bool has_logits;
    bool is_ahead; /* the device has chosen its last token, and runs it already */
};

struct xm_scheduler {
    struct xm_compiled *compiled;
    const struct xm_package *package; /* borrowed; may be NULL */
    struct xm_prefix_store *prefixes; /* borrowed; may be NULL */
    struct xm_batch *batch;
    struct xm_chooser *chooser;
    size_t slots, n_running;
    /* The first job that waits, where the cache has no room for it until it, or a job that holds
     * pages, is over; NULL: it has not been tried. */
    const struct xm_scheduled_job *blocked;
    /* In the order of ids, which is that of admission: jobs that have begun come first. The thread
     * that steps changes the list under the lock, and reads it without. */
    struct xm_scheduled_job *jobs, **end;
    double next_deadline; /* the earliest of all; INFINITY: there is none */
    /* Of a run; [n_room] */
    struct xm_batch_row *rows;
    struct xm_choice *choices;          /* tokens that are chosen in this step */
    struct xm_device_choice *on_device; /* the same, if the device chooses     */
    struct xm_scheduled_job **choosing; /* the job of each choice              */
    uint64_t *positions;                /* one more than the others            */
    size_t n_room;
    uint64_t vocabulary; /* size of the last rows of logits */

    pthread_mutex_t lock; /* guards the following, and all links of jobs */
    struct xm_scheduled_job *new_jobs, **new_end;
    uint64_t last_id;
    size_t n_jobs, n_waiting; /* n_waiting: they have never run */
    bool has_cancelled;
    bool is_closing; /* no job is taken any more */
};

static inline uint64_t
xm_job_past(const struct xm_scheduled_job *j)
{
    return j->sequence ? j->sequence->ops->past(j->sequence) : 0;
}

/* Tokens that the sequence does not hold yet. */
static inline uint64_t
xm_job_rest(const struct xm_scheduled_job *j)
{
    return j->text.tokens.n - xm_job_past(j);
}

/* The first job from `j` on that runs; those that have not begun are behind all others. */
static inline struct xm_scheduled_job *
xm_running_from(struct xm_scheduled_job *j)
{
    while (j && j->state != XM_JOB_RUNS)
        j = j->has_begun ? j->next : NULL;
    return j;
}

static inline struct xm_scheduled_job *
xm_first_running(const struct xm_scheduler *s)
{
    return xm_running_from(s->jobs);
}

static inline struct xm_scheduled_job *
xm_next_running(const struct xm_scheduled_job *j)
{
    return xm_running_from(j->next);
}

/* ---- scheduler_admission.c ---- */

/* Gives slots to the jobs that wait, in their order, while the cache has room. */
void xm_scheduler_admit(struct xm_scheduler *s);
/* The cache is full: the newest job gives up its pages and waits. One that has no room alone has
 * failed, as *why says. */
void xm_scheduler_preempt(struct xm_scheduler *s, const struct xm_error *why);
/* The job is over, or has failed. The end of the step tells it. */
void xm_scheduler_finish_job(struct xm_scheduler *s, struct xm_scheduled_job *j);
void xm_scheduler_fail_job(struct xm_scheduler *s, struct xm_scheduled_job *j,
                           const struct xm_error *why);
/* Whether an older job computes the beginning of this one. */
bool xm_job_waits_for_leader(struct xm_scheduled_job *j);
/* After a run: the jobs with the same prompt as one whose prefill is complete read the same row of
 * logits. A job that cannot be forked computes its prompt itself. */
void xm_scheduler_fork_jobs(struct xm_scheduler *s);

/* ---- scheduler_run.c ---- */

/* Builds what the device needs to choose for a text that has begun, if it can. */
void xm_scheduler_prepare(const struct xm_scheduler *s, const struct xm_text *t);
/* Before the job's sequence is used otherwise: drops the token that the device runs already. */
void xm_scheduler_stop_ahead(const struct xm_scheduler *s, struct xm_scheduled_job *j);
/* Memory for as many rows as there are slots. */
enum xm_status xm_scheduler_reserve_rows(struct xm_scheduler *s, struct xm_error *err);
enum xm_status xm_scheduler_run(struct xm_scheduler *s, struct xm_scheduler_progress *out,
                                struct xm_error *err);
/* A token for each text that has logits. */
enum xm_status xm_scheduler_choose(struct xm_scheduler *s,
                                   struct xm_scheduler_progress *out,
                                   struct xm_error *err);

#endif
