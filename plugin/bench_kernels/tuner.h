/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses kernel variants by timing them: finds the steps of a problem that have several variants,
 * times these, and stores the fastest (primitives/measured_rows.h). Here a row is a variant of a
 * step's variant table. `xemoe tune` times all steps (tune.c); beside a running model, only steps
 * without a stored choice are timed (tune_beside.c).
 */
#ifndef XM_PLUGIN_BENCH_KERNELS_TUNER_H
#define XM_PLUGIN_BENCH_KERNELS_TUNER_H

#include "plugin/bench_kernels/bench.h"
#include "primitives/tuning.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One step of one problem. */
struct xm_tuner_job {
    const struct xm_timed_step *step;
    const struct xm_variant_table *table; /* the step's variant table */
    struct xm_timed_problem problem;      /* with the number of tokens of the step */
    struct xm_timed_problem timed;        /* as `problem`, or with fewer experts */
};

/* The caller sets the members it needs; the others are zero. */
struct xm_tuner {
    struct xm_engine *engine;
    double seconds; /* of each measurement; a variant has one to three */
    double budget;  /* seconds that all runs together may take */
    double spent;   /* seconds of the budget used so far; setting 0 begins a new budget */
    double most_bytes;   /* maximum bytes of the weights made for a step's experts */
    bool only_unsettled; /* skips steps that have a stored choice */
    /* Called before a variant is built or timed; returning false stops the function. NULL: never
     * stops. */
    bool (*goes_on)(void *ctx, const struct xm_tuner_job *job, const char *row);
    /* Called when a step has been timed; is_kept: the choice was stored on disk. NULL: not
     * called. */
    void (*found)(void *ctx, const struct xm_tuner_job *job,
                  const struct xm_timed_rows *timed, bool is_kept);
    /* Called with a sentence for the user when a variant has computed wrong results. NULL: not
     * called. */
    void (*wrong)(void *ctx, const char *sentence);
    void *ctx;
};

/* Removes experts until the weights have at most `most` bytes, and tokens of a prompt, so that each
 * remaining expert has as many tokens as before. Keeps at least the experts that two tokens
 * choose. */
void xm_tuner_reduce(struct xm_timed_problem *p, double most);

/* Times the variants of a problem's steps for one token (`decodes`), or for prompts, and stores the
 * fastest. Compares their results; a variant that computes others than the reference is noted as
 * wrong (primitives/measured_rows.h) and not stored. Steps that run by another table are skipped.
 * XM_CANCELLED: the budget is used up, or goes_on returned false; earlier choices stay stored. A
 * step that alone uses up a whole budget gets the stored note that it has no choice, so that later
 * steps can be timed.
 *
 * xm_tuner_run and xm_tuner_build set XM_FORCE and unset it at the end, even if the user had set
 * it. */
enum xm_status xm_tuner_run(struct xm_tuner *t, const struct xm_timed_problem *p,
                            bool decodes, struct xm_error *err);
/* Builds all kernels that xm_tuner_run would time, without allocating device memory. goes_on is
 * called before each variant. XM_CANCELLED: it returned false. */
enum xm_status xm_tuner_build(struct xm_tuner *t, const struct xm_timed_problem *p,
                              bool decodes, struct xm_error *err);
/* Returns the number of variants of the problem's steps that the device can run, which is how often
 * xm_tuner_build calls goes_on. */
size_t xm_tuner_candidates(const struct xm_tuner *t, const struct xm_timed_problem *p);

/* A lock for timing kernels of devices whose choices are stored in one folder. One process at a
 * time holds it, until xm_tuner_unlock. */
struct xm_tuner_lock {
    int file;      /* file descriptor; -1: none */
    bool is_taken; /* another process held the lock at the last attempt */
};
/* Returns false if another process holds the lock (is_taken), or the folder is not writable. */
bool xm_tuner_try_lock(const char *folder, struct xm_tuner_lock *lock);
/* Waits until no other process holds the lock. Returns false if the folder is not writable. */
bool xm_tuner_wait_lock(const char *folder, struct xm_tuner_lock *lock);
void xm_tuner_unlock(struct xm_tuner_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
