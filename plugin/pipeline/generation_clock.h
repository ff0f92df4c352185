/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of each token of a generation, for callers that need more than the sums in struct
 * xm_generation_times. They are measured only if the caller provides a clock.
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
    double template_s; /* rendering of the chat template; see has_template */
    double tokenise_s, detokenise_s;
    bool has_template;          /* a template was rendered */
    bool failed;                /* out of memory: times are missing */
    struct xm_time_list tokens; /* when each token was chosen, including end tokens */
    struct xm_time_list runs;   /* duration of each run of the model */
};
void xm_generation_clock_free(struct xm_generation_clock *c);

/* `c` may be NULL in all of these functions. */
double xm_clock_start(const struct xm_generation_clock *c);
/* Adds the seconds since `start` to `sum`, a member of the clock. */
void xm_clock_add(const struct xm_generation_clock *c, double *sum, double start);
void xm_clock_add_run(struct xm_generation_clock *c, double start);
void xm_clock_add_run_of(struct xm_generation_clock *c, double seconds);
void xm_clock_add_token(struct xm_generation_clock *c);

#ifdef __cplusplus
}
#endif
#endif
