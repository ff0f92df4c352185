/* SPDX-License-Identifier: Apache-2.0
 *
 * The expert caches of a program: one for each layer whose experts stay in host memory, together
 * of the size that XM_EXPERT_CACHE says, in proportion to what each layer has there.
 *
 * They are the program's, so that they stay warm from one request to the next and are counted
 * once; and their tables have no lock on the device, so that one request at a time has them, for a
 * run. A run that does not get them reads its experts where they are: the results are the same
 * bits. A cache is a program's only part that changes.
 */
#ifndef XM_PLUGIN_GPU_EXPERT_CACHES_H
#define XM_PLUGIN_GPU_EXPERT_CACHES_H

#include "plugin/gpu/program.h"
#include "plugin/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the caches of a program whose steps are complete. Where the device has no memory for a size
 * that the user did not choose there are none. */
enum xm_status xm_expert_caches_create(struct xm_program *p, struct xm_error *err);
void xm_expert_caches_destroy(struct xm_program *p);

/* Takes them for a run on `queue`; *taken: whether the run has them now, which it never has after a
 * failure. */
enum xm_status xm_expert_caches_take(struct xm_program *p, struct xm_queue *queue,
                                     bool *taken, struct xm_error *err);
/* Gives their memory back for good, for runs that need it: the KV cache grows, they do not have to
 * be. False: there are none, or a run has them. */
bool xm_expert_caches_drop(struct xm_program *p);
/* The run has ended, and nothing of it is left in its queue. */
void xm_expert_caches_give_back(struct xm_program *p, bool run_succeeded);

/* Reads the counts from the device; waits for a run that has the caches. */
enum xm_status xm_expert_caches_stats(const struct xm_program *p,
                                      struct xm_expert_cache_stats *out,
                                      struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
