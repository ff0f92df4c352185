/* SPDX-License-Identifier: Apache-2.0
 *
 * Device times of a program's steps: a sum of nanoseconds and a count of runs for each label
 * (xm_queue_label), over all queues that share the object. The sums grow for as long as the object
 * lives: resetting a queue's profile does not change them.
 *
 * Any thread may add and read. While others add, a reader may see a run whose time is not complete.
 */
#ifndef XM_RUNTIME_LABEL_TIMES_H
#define XM_RUNTIME_LABEL_TIMES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_label_times;

/* Creates sums for labels 0 … n - 1; times of other labels are ignored. NULL: no memory. */
struct xm_label_times *xm_label_times_create(uint32_t n);
void xm_label_times_destroy(struct xm_label_times *t); /* NULL is allowed */
/* add_run counts one run of the label's step; add_ns adds the time of one launch. A run may take
 * several launches. add_run does nothing if `t` is NULL. */
void xm_label_times_add_run(struct xm_label_times *t, uint32_t label);
void xm_label_times_add_ns(struct xm_label_times *t, uint32_t label, uint64_t ns);
/* Returns the mean time of a run in nanoseconds; 0: none has been measured. */
uint64_t xm_label_times_mean_ns(const struct xm_label_times *t, uint32_t label);

#ifdef __cplusplus
}
#endif
#endif
