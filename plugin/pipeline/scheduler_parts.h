/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the scheduler, for scheduler*.c only.
 *
 *     scheduler.c            adding and ending jobs; a step
 *     scheduler_admission.c  which jobs run, what they share, which one is preempted
 *     scheduler_run.c        one run of all texts, and choosing tokens, on host or device
 */
#ifndef XM_PLUGIN_PIPELINE_SCHEDULER_PARTS_H
#define XM_PLUGIN_PIPELINE_SCHEDULER_PARTS_H

#include <pthread.h>

#include "plugin/pipeline/chooser.h"
#include "plugin/pipeline/prefix_store.h"
#include "plugin/pipeline/scheduler.h"
#include "plugin/pipeline/text.h"

enum xm_job_state {
    XM_JOB_WAITS, /* for admission, the first time or after preemption */
    XM_JOB_RUNS,  /* has a slot                                                   */
    XM_JOB_OVER   /* will be ended at the end of the step */
};

struct xm_scheduled_job {
    struct xm_job asked;
    uint64_t id;
    struct xm_scheduled_job *next; /* next in its list; written under the lock */
    bool is_cancelled;             /* read with xm_flag_get; any thread may set it */
    /* The following members belong to the thread that runs the steps. */
    struct xm_generation_result result; /* its error says why the job fails */
    enum xm_job_state state;
    bool has_begun;         /* `text` has begun */
    bool has_run, is_again; /* has_run: was admitted; is_again: was admitted before */
    struct xm_text text;
    struct xm_sequence *sequence; /* NULL: it holds no pages                     */
    /* the prompt, or tokens recomputed after preemption, are not complete */
    bool in_prefill;
    /* The job that computes the first `shared` tokens, which are also this job's, while this job
     * waits; NULL: none. is_fork: all tokens are the same, so that this job reads the leader's row
     * of logits. */
    const struct xm_scheduled_job *leader;
    uint64_t shared;
    bool is_fork;
    uint64_t n_fed; /* number of its tokens in this run */
    uint32_t row;   /* index of its row in the run that has its logits */
    bool has_logits;
    bool is_ahead; /* the device has chosen its last token and already enqueued its run */
};

struct xm_scheduler {
    struct xm_compiled *compiled;
    const struct xm_package *package; /* borrowed; may be NULL */
    struct xm_prefix_store *prefixes; /* borrowed; may be NULL */
    struct xm_batch *batch;
    struct xm_chooser *chooser;
    size_t slots, n_running;
    /* The first waiting job, if the cache has no room for it until it or a job that holds pages
     * ends; NULL: it has not been tried. */
    const struct xm_scheduled_job *blocked;
    /* In the order of ids, which is the order of admission: jobs that have begun come first. The
     * thread that runs the steps changes the list under the lock, and reads it without. */
    struct xm_scheduled_job *jobs, **end;
    double next_deadline; /* the earliest deadline of all jobs; INFINITY: none */
    /* Arrays for one run; [n_room] */
    struct xm_batch_row *rows;
    struct xm_choice *choices;          /* tokens chosen in this step */
    struct xm_device_choice *on_device; /* as `choices`, if the device chooses */
    struct xm_scheduled_job **choosing; /* the job of each choice              */
    uint64_t *positions;                /* has one element more than the others */
    size_t n_room;
    uint64_t vocabulary; /* size of the last rows of logits */

    pthread_mutex_t lock; /* guards the following members, and all `next` links of jobs */
    struct xm_scheduled_job *new_jobs, **new_end;
    uint64_t last_id;
    size_t n_jobs, n_waiting; /* n_waiting: jobs that have never run */
    bool has_cancelled;
    bool is_closing; /* no more jobs are accepted */
};

static inline uint64_t
xm_job_past(const struct xm_scheduled_job *j)
{
    return j->sequence ? j->sequence->ops->past(j->sequence) : 0;
}

/* Returns how many tokens of the job its sequence does not hold yet. */
static inline uint64_t
xm_job_rest(const struct xm_scheduled_job *j)
{
    return j->text.tokens.n - xm_job_past(j);
}

/* Returns the first running job from `j` on; jobs that have not begun come after all others. */
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

/* Admits waiting jobs, in their order, while the cache has room and slots are free. */
void xm_scheduler_admit(struct xm_scheduler *s);
/* Handles a full cache: the newest job gives up its pages and waits. If it is the only job with
 * pages, it fails with *why. */
void xm_scheduler_preempt(struct xm_scheduler *s, const struct xm_error *why);
/* Ends or fails a job; the end of the step reports it to the caller. */
void xm_scheduler_finish_job(struct xm_scheduler *s, struct xm_scheduled_job *j);
void xm_scheduler_fail_job(struct xm_scheduler *s, struct xm_scheduled_job *j,
                           const struct xm_error *why);
/* Whether an older job is still computing the beginning of this one. */
bool xm_job_waits_for_leader(struct xm_scheduled_job *j);
/* After a run: jobs with the same prompt as a job whose prefill is complete fork its sequence and
 * read the same row of logits. A job whose fork fails computes its prompt itself. */
void xm_scheduler_fork_jobs(struct xm_scheduler *s);

/* ---- scheduler_run.c ---- */

/* Builds the kernels that the device needs to choose tokens for a text that has begun, if it can
 * choose them. */
void xm_scheduler_prepare(const struct xm_scheduler *s, const struct xm_text *t);
/* Call before the job's sequence is used otherwise: drops the token whose run the device has
 * already enqueued. */
void xm_scheduler_stop_ahead(const struct xm_scheduler *s, struct xm_scheduled_job *j);
/* Allocates the arrays for a run of as many rows as there are slots. */
enum xm_status xm_scheduler_reserve_rows(struct xm_scheduler *s, struct xm_error *err);
enum xm_status xm_scheduler_run(struct xm_scheduler *s, struct xm_scheduler_progress *out,
                                struct xm_error *err);
/* Chooses a token for each text that has logits. */
enum xm_status xm_scheduler_choose(struct xm_scheduler *s,
                                   struct xm_scheduler_progress *out,
                                   struct xm_error *err);

#endif
