/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the texts of many jobs together on one model. Jobs come and go while others run:
 *
 *     submit ──► waiting, in order ──► running ──► one run of all ──► rows of logits ──► texts
 *     cancel          ▲   admission       │              ▲                                 │
 *                     └── cache is full ──┘              └─────────────────────────────────┘
 *
 * A step is one run on the device. It has a token of each text in its decode phase, and parts of
 * prompts (prefill) in what is left of a chunk, so that no text stands still during the prefill of
 * a long prompt. Each text equals what a session makes of its prompt alone, but for rounding:
 * kernels for several tokens add in another order than those for one, or multiply in 8 bits
 * (docs/execution.md).
 *
 * Where the device can choose for all texts of a step, it runs the chosen tokens before the host
 * knows them. The next step takes them from that run, and has no other part. So a new prompt waits
 * for a step more, and a text that ends has run a token in vain.
 *
 * Admission is in the order of the jobs: the first job that waits is admitted when a slot is free
 * and the cache has room for its prompt. Pages of a beginning that the cache still has are reused.
 * Of jobs that begin alike the later ones wait until the first has computed what they share; those
 * with the same prompt fork its sequence. Where the cache is full all the same, the newest text
 * gives up its pages, waits, and computes them again when it is admitted anew.
 *
 * A failure of one job ends that job alone: its prompt is refused, its logits are not finite, its
 * deadline has passed, it has no room in the cache alone. Any other failure is the device's.
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

/* `compiled` has sampled_logits. The package must outlive the scheduler; it may be NULL or have no
 * tokenizer: then results are ids only. The caller has read its tokenizer and generation, and where
 * jobs are answers of chats its chat template.
 * XM_UNSUPPORTED: the device, or this model, has no sequences. */
enum xm_status xm_scheduler_create(struct xm_compiled *compiled,
                                   const struct xm_package *package,
                                   struct xm_scheduler **out, struct xm_error *err);
/* Ends its jobs as cancelled; those that on_end submits meanwhile are refused. NULL is allowed. */
void xm_scheduler_destroy(struct xm_scheduler *s);

/* ---- jobs: from any thread, also inside of on_piece and on_end ---- */

/* A text that is wanted. What it points to stays the caller's, and as it is, until on_end. */
struct xm_job {
    const int32_t *prompt; /* ids below the vocabulary */
    size_t n_prompt;
    /* Why it fails in its turn, before it begins; NULL or XM_OK: it may begin. */
    const struct xm_error *refused;
    /* Its prompt is not used, nor are guesses. on_piece is called by the thread that steps. */
    struct xm_generation asked;
    struct xm_sampling sampling;
    /* When it fails with XM_CANCELLED and the tokens that it has, as xm_now() counts; 0: never. It
     * is looked at between runs. */
    double deadline;
    /* It is refused where so many jobs are there beside those that free slots take; 0: no bound */
    size_t most_waiting;
    /* Jobs that are submitted behind it at once, without a bound: it is refused where they would
     * be. */
    size_t n_more;
    /* Called once, by the thread that steps: *result has neither prompt nor times. It is freed
     * afterwards; to keep it, move it out and leave zeros. */
    void (*on_end)(struct xm_generation_result *result, void *ctx);
    void *ctx; /* of on_end */
};

/* Copies *job; *id (NULL: not wanted) names it for cancelling. XM_BUSY: too many wait. After a
 * failure on_end is not called. XM_CANCELLED: the scheduler is being destroyed. */
enum xm_status xm_scheduler_submit(struct xm_scheduler *s, const struct xm_job *job,
                                   uint64_t *id, struct xm_error *err);
/* The next step ends the job, waiting or running, with the tokens that it has. Does nothing to a
 * job that has ended. */
void xm_scheduler_cancel(struct xm_scheduler *s, uint64_t id);

/* ---- steps: from one thread at a time ---- */

/* At most n > 0 texts run together; 1 before the first call. */
void xm_scheduler_set_slots(struct xm_scheduler *s, size_t n);
/* The sequences of ended texts are kept in the store, and prompts begin with what it has. The
 * store, of the same model, is the caller's until another call or the end. NULL: none, as at
 * first. */
void xm_scheduler_set_prefix_store(struct xm_scheduler *s, struct xm_prefix_store *p);

/* What a step did. */
struct xm_scheduler_progress {
    uint64_t
        tokens; /* run; 0: none, because nothing was to be run or the cache is full */
    bool has_prompts; /* tokens of prompts were among them                    */
    double run_s;     /* seconds on the device                                */
    size_t n_jobs;    /* that the scheduler has now; 0: it is idle            */
    size_t n_waiting; /* of them, those that have never run                   */
};

/* Takes new jobs, runs what is to be run once, chooses a token for each text that has logits, and
 * ends the texts that are over. A failure is the device's, or for want of memory all jobs';
 * XM_CANCELLED: by its request. The caller then ends the jobs with xm_scheduler_end_all. */
enum xm_status xm_scheduler_step(struct xm_scheduler *s,
                                 struct xm_scheduler_progress *out, struct xm_error *err);
/* Ends all jobs that have been submitted: as failed, or as cancelled where `why` is NULL. */
void xm_scheduler_end_all(struct xm_scheduler *s, const struct xm_error *why);

struct xm_compiled *xm_scheduler_compiled(const struct xm_scheduler *s);
/* Positions that texts share as a whole, or not. */
uint64_t xm_scheduler_page(const struct xm_scheduler *s);
/* For cancelling the run that goes on and for statistics; it cannot be run. Owned by the
 * scheduler. */
struct xm_infer *xm_scheduler_request(const struct xm_scheduler *s);

#ifdef __cplusplus
}
#endif
#endif
