/* SPDX-License-Identifier: Apache-2.0
 *
 * How long each rank of a job has been silent, for a process that looks for signs of life of the
 * others at short intervals.
 *
 * Only time in which this process ran counts. If it stood still itself, because it was stopped, or
 * its machine slept, it cannot say what the others did; it then counts one interval.
 */
#ifndef XM_RUNTIME_MPI_SILENCE_H
#define XM_RUNTIME_MPI_SILENCE_H

#include "runtime/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_silence {
    uint32_t ranks, own;
    double limit_s; /* a rank that is silent for longer is lost */
    /* between two calls of xm_silence_find, if this process is not delayed */
    double interval_s;
    double last; /* time of the last call; in the units of xm_now */
    double silent_s[XM_MOST_RANKS];
    bool is_heard[XM_MOST_RANKS]; /* since the last call of xm_silence_find */
    /* the rank has said so, and need not be heard any more */
    bool has_ended[XM_MOST_RANKS];
};

/* Begins at time `now`, in seconds. */
void xm_silence_begin(struct xm_silence *s, uint32_t ranks, uint32_t own, double limit_s,
                      double interval_s, double now);
/* Call for each sign of life that has arrived, then xm_silence_find. */
void xm_silence_heard(struct xm_silence *s, uint32_t rank);
/* Returns the first rank that is lost at time `now`; s->ranks: none. */
uint32_t xm_silence_find(struct xm_silence *s, double now);
/* Returns the first rank, maybe this one, that has not been silent for half of the limit: all ranks
 * that hear each other name the same. */
uint32_t xm_silence_first(const struct xm_silence *s);

#ifdef __cplusplus
}
#endif
#endif
