/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the texts of many jobs together on one model. Jobs may be added and removed at any time:
 *
 *     submit ──► waiting, in order ──► running ──► one run of all ──► rows of logits ──► texts
 *     cancel          ▲   admission       │              ▲                                 │
 *                     └── cache is full ──┘              └─────────────────────────────────┘
 *
 * A step is one run on the device. It has one token of each text in its decode phase, and parts of
 * prompts (prefill) in the rest of a chunk, so that a long prompt does not stop other texts. Each
 * text equals that of a session with the same prompt, except for rounding: kernels for several
 * tokens add in another order than those for one, or multiply in 8 bits (docs/execution.md).
 *
 * If the device can choose the tokens of all texts of a step, it runs the chosen tokens before the
 * host knows them; the next step then consists of that run only. Therefore a new prompt waits one
 * more step, and a text that ends has run one token in vain.
 *
 * Jobs are admitted in order: the first waiting job is admitted when a slot is free and the cache
 * has room for its prompt. Cached pages of its beginning are reused. If jobs begin alike, the later
 * ones wait until the first has computed the shared beginning; jobs with the same prompt fork its
 * sequence. If the cache becomes full nevertheless, the newest text gives up its pages, waits, and
 * computes them again after its next admission (preemption).
 *
 * Some failures end one job only: its prompt is refused, its logits are not finite, its deadline
 * has passed, or the cache is too small for it alone. Any other failure is the device's.
 */
#ifndef XM_PLUGIN_PIPELINE_SCHEDULER_H
#define XM_PLUGIN_PIPELINE_SCHEDULER_H

#include "plugin/pipeline/generation.h"
#include "plugin/plugin.h"
#include "plugin/text/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_scheduler;
struct xm_prefix_store;

/* Creates a scheduler for a model that was compiled with sampled_logits. The package must outlive
 * the scheduler; it may be NULL or have no tokenizer: then results are ids only. The caller has
 * read the package's tokenizer and generation, and its chat template if jobs are answers of chats.
 * XM_UNSUPPORTED: the device, or this model, does not support sequences. */
enum xm_status xm_scheduler_create(struct xm_compiled *compiled,
                                   const struct xm_package *package,
                                   struct xm_scheduler **out, struct xm_error *err);
/* Ends all jobs as cancelled; jobs submitted in on_end meanwhile are refused. NULL is allowed. */
void xm_scheduler_destroy(struct xm_scheduler *s);

/* ---- jobs: any thread may call these, also in on_piece and on_end ---- */

/* A request for a text. Until on_end, the caller keeps everything that it points to unchanged. */
struct xm_job {
    const int32_t *prompt; /* ids below the vocabulary */
    size_t n_prompt;
    /* The error with which the job fails when it is its turn; NULL or XM_OK: none. */
    const struct xm_error *refused;
    /* Its prompt and guesses are not used. on_piece is called by the thread that runs the steps. */
    struct xm_generation asked;
    struct xm_sampling sampling;
    /* Time of xm_now() at which the job fails with XM_CANCELLED, keeping its tokens so far; 0:
     * never. Checked between runs. */
    double deadline;
    /* The job is refused if this many jobs wait, not counting those that free slots will take; 0:
     * no bound. */
    size_t most_waiting;
    /* Number of jobs that the caller submits right after this one, without a bound: this job is
     * refused if there is no room for them either. */
    size_t n_more;
    /* Called once, by the thread that runs the steps. *result has neither prompt nor times. It is
     * freed afterwards; to keep it, move it and leave zeros. */
    void (*on_end)(struct xm_generation_result *result, void *ctx);
    void *ctx; /* argument of on_end */
};

/* Submits a copy of *job; *id (NULL: not wanted) identifies it for cancelling. XM_BUSY: too many
 * jobs wait. XM_CANCELLED: the scheduler is being destroyed. After a failure on_end is not
 * called. */
enum xm_status xm_scheduler_submit(struct xm_scheduler *s, const struct xm_job *job,
                                   uint64_t *id, struct xm_error *err);
/* Makes the next step end the job, waiting or running, with its tokens so far. No effect on a job
 * that has ended. */
void xm_scheduler_cancel(struct xm_scheduler *s, uint64_t id);

/* ---- steps: one thread at a time calls these ---- */

/* Sets the maximum number n > 0 of texts that run together; 1 before the first call. */
void xm_scheduler_set_slots(struct xm_scheduler *s, size_t n);
/* Saves the sequences of ended texts in the store, and loads beginnings of prompts from it. The
 * store belongs to the same model; the caller owns it and keeps it until another call or the end.
 * NULL: no store, the default. */
void xm_scheduler_set_prefix_store(struct xm_scheduler *s, struct xm_prefix_store *p);

/* The outcome of a step. */
struct xm_scheduler_progress {
    /* number of tokens that were run; 0: nothing to run, or the cache is full */
    uint64_t tokens;
    bool has_prompts; /* tokens of prompts were among them */
    double run_s;     /* seconds on the device                                */
    size_t n_jobs;    /* number of jobs in the scheduler; 0: it is idle */
    size_t n_waiting; /* the part of n_jobs that has never run */
};

/* Takes new jobs, makes one run, chooses a token for each text that has logits, and ends completed
 * texts. A failure affects all jobs: the device failed, memory is missing, or XM_CANCELLED: its
 * request was cancelled. Then the caller ends the jobs with xm_scheduler_end_all. */
enum xm_status xm_scheduler_step(struct xm_scheduler *s,
                                 struct xm_scheduler_progress *out, struct xm_error *err);
/* Ends all submitted jobs: as failed, or as cancelled if `why` is NULL. */
void xm_scheduler_end_all(struct xm_scheduler *s, const struct xm_error *why);

struct xm_compiled *xm_scheduler_compiled(const struct xm_scheduler *s);
/* Returns the number of positions in a page; texts share whole pages. */
uint64_t xm_scheduler_page(const struct xm_scheduler *s);
/* Returns the infer request for cancelling the run in progress and for statistics; it cannot be
 * run. The scheduler owns it. */
struct xm_infer *xm_scheduler_request(const struct xm_scheduler *s);

#ifdef __cplusplus
}
#endif
#endif
