/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the steps of a program take: one sum for each label (xm_queue_label), over all queues
 * that share it and as long as it lives, whatever any of them resets.
 *
 * Any thread may add and read. What is read while others add is of some moment, label by label: a
 * run under way has not all of its time yet. Where `t` may be NULL nothing is counted.
 */
#ifndef XM_RUNTIME_LABEL_TIMES_H
#define XM_RUNTIME_LABEL_TIMES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_label_times;

/* Of labels 0 … n - 1; others are not counted. NULL: no memory. */
struct xm_label_times *xm_label_times_create(uint32_t n);
void xm_label_times_destroy(struct xm_label_times *t); /* NULL is allowed */
/* One run of what has the label, which may take several launches (`t` may be NULL), and the time of
 * one of them. */
void xm_label_times_add_run(struct xm_label_times *t, uint32_t label);
void xm_label_times_add_ns(struct xm_label_times *t, uint32_t label, uint64_t ns);
/* Of a run; 0: no time has been measured. */
uint64_t xm_label_times_mean_ns(const struct xm_label_times *t, uint32_t label);

#ifdef __cplusplus
}
#endif
#endif
