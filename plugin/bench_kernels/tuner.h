/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing kernels by timing them: which steps of a problem have rows to choose from, the times of
 * these rows, and keeping the fastest (primitives/measured_rows.h). `xemoe tune` times everything
 * anew (tune.c); beside a model that runs only what no row is kept for is timed (tune_beside.c).
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
    const struct xm_variant_table *table; /* the step's */
    struct xm_timed_problem problem;      /* with the step's tokens */
    struct xm_timed_problem timed;        /* the same, or with fewer experts */
};

/* The caller fills it in; the rest is zero. */
struct xm_tuner {
    struct xm_engine *engine;
    double seconds;      /* of each measurement, of which a row has one to three */
    double budget;       /* seconds that all runs together may take              */
    double spent;        /* of them; 0 begins a new budget                       */
    double most_bytes;   /* of weights that are made for a step's experts  */
    bool only_unsettled; /* leaves out steps for which something is kept         */
    /* Called before a row is built or timed; false ends that. NULL: it goes on. */
    bool (*goes_on)(void *ctx, const struct xm_tuner_job *job, const char *row);
    /* Called when a step has been timed; is_kept: the choice is on disk. NULL: nothing. */
    void (*found)(void *ctx, const struct xm_tuner_job *job,
                  const struct xm_timed_rows *timed, bool is_kept);
    void *ctx;
};

/* Takes away experts of a problem whose weights have more than `most` bytes, and as many tokens of
 * a prompt that each of the others still has as many; as many experts stay as two tokens choose. */
void xm_tuner_reduce(struct xm_timed_problem *p, double most);

/* Times the rows of a problem's steps that decode one token, or of the others, and keeps the
 * fastest. Steps that run by other tables are passed over. XM_CANCELLED: the budget is spent, or
 * goes_on said no; what was kept before stays kept. For a step that spends a whole budget alone it
 * is kept that there is no row to choose, so that the steps behind it get their turn.
 *
 * Both functions below set XM_FORCE meanwhile and unset it behind that, also one that the user
 * set. */
enum xm_status xm_tuner_run(struct xm_tuner *t, const struct xm_timed_problem *p,
                            bool decodes, struct xm_error *err);
/* Builds all kernels that xm_tuner_run would time, and takes no memory of the device. goes_on is
 * called before each row. XM_CANCELLED: it said no. */
enum xm_status xm_tuner_build(struct xm_tuner *t, const struct xm_timed_problem *p,
                              bool decodes, struct xm_error *err);
/* Rows of the problem's steps that the device takes, which is how often xm_tuner_build calls
 * goes_on. */
size_t xm_tuner_candidates(const struct xm_tuner *t, const struct xm_timed_problem *p);

/* The right to time kernels of the devices whose choices are kept in a folder: one process at a
 * time has it, until xm_tuner_unlock. */
struct xm_tuner_lock {
    int file;      /* -1: none */
    bool is_taken; /* by another process, when it was tried last */
};
/* False: another process has it (is_taken), or the folder cannot be written. */
bool xm_tuner_try_lock(const char *folder, struct xm_tuner_lock *lock);
/* Waits until no other process has it. False: the folder cannot be written. */
bool xm_tuner_wait_lock(const char *folder, struct xm_tuner_lock *lock);
void xm_tuner_unlock(struct xm_tuner_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
