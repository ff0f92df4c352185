/* SPDX-License-Identifier: Apache-2.0
 *
 * The expert caches of a program: one for each layer whose experts stay in host memory. Together
 * they have the size XM_EXPERT_CACHE, distributed in proportion to the layers' bytes in host
 * memory.
 *
 * The caches belong to the program, so that they stay warm from one request to the next. Their
 * tables have no lock on the device, so only one run at a time may use the caches. A run that does
 * not get them reads the experts from host memory; its results are bit-identical.
 */
#ifndef XM_PLUGIN_LOWER_EXPERT_CACHES_H
#define XM_PLUGIN_LOWER_EXPERT_CACHES_H

#include "plugin/lower/program.h"
#include "plugin/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates the caches of a program after its last step was added. If the device lacks the memory and
 * the user did not set the size, the program has no caches and the call succeeds. */
enum xm_status xm_expert_caches_create(struct xm_program *p, struct xm_error *err);
void xm_expert_caches_destroy(struct xm_program *p);

/* Reserves the caches for a run on `queue`. *taken: the run may use them, and must give them back;
 * false if another run has them, or after a failure. */
enum xm_status xm_expert_caches_take(struct xm_program *p, struct xm_queue *queue,
                                     bool *taken, struct xm_error *err);
/* Frees the caches for good, because a run needs their memory (the KV cache must grow). False:
 * there are none, or a run uses them. */
bool xm_expert_caches_drop(struct xm_program *p);
/* Ends the reservation; all commands of the run must have completed. */
void xm_expert_caches_give_back(struct xm_program *p, bool run_succeeded);

/* Reads hits and misses from the device; waits for a run that uses the caches. */
enum xm_status xm_expert_caches_stats(const struct xm_program *p,
                                      struct xm_expert_cache_stats *out,
                                      struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
