/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of one generation, token by token: for callers who need more than the sums of struct
 * xm_generation_times. Where the caller gives no clock, these times are not measured.
 */
#ifndef XM_PLUGIN_PIPELINE_GENERATION_CLOCK_H
#define XM_PLUGIN_PIPELINE_GENERATION_CLOCK_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_time_list {
    double *s; /* owned */
    size_t n, capacity;
};

/* Zero-initialise. Durations of repeated work are added up. All times are seconds of xm_now(). */
struct xm_generation_clock {
    double template_s; /* rendering; see has_template */
    double tokenise_s, detokenise_s;
    bool has_template;          /* one was rendered                      */
    bool failed;                /* no memory: times are missing          */
    struct xm_time_list tokens; /* when each was chosen, end tokens too  */
    struct xm_time_list runs;   /* what each run of the model took       */
};
void xm_generation_clock_free(struct xm_generation_clock *c);

/* `c` may be NULL for all of these. */
double xm_clock_start(const struct xm_generation_clock *c);
/* Adds the seconds since `start` to one of its sums. */
void xm_clock_add(const struct xm_generation_clock *c, double *sum, double start);
void xm_clock_add_run(struct xm_generation_clock *c, double start);
void xm_clock_add_run_of(struct xm_generation_clock *c, double seconds);
void xm_clock_add_token(struct xm_generation_clock *c);

#ifdef __cplusplus
}
#endif
#endif
