/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording: launches of a queue with their arguments, which can be enqueued again. What checks
 * them, binds arguments and makes sizes has been done then, and only the driver's call is left. It
 * holds references to the buffers, and is used by the thread that uses the queue.
 */
#ifndef XM_RUNTIME_RECORDING_H
#define XM_RUNTIME_RECORDING_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_recording;

/* XM_UNSUPPORTED: the engine has none. */
enum xm_status xm_recording_create(struct xm_queue *q, struct xm_recording **out,
                                   struct xm_error *err);
/* No queue records to it any more. NULL is allowed. */
void xm_recording_destroy(struct xm_recording *rec);
/* What is launched on the queue from now on is also recorded behind the launches that `rec` has;
 * NULL: nothing is. Launches that cannot be recorded, and all other commands, are missed. */
void xm_queue_record(struct xm_queue *q, struct xm_recording *rec);
uint32_t xm_recording_launches(const struct xm_recording *rec);
uint64_t xm_recording_missed(const struct xm_recording *rec);
/* Drops the launches from `n` on. */
void xm_recording_truncate(struct xm_recording *rec, uint32_t n);
/* Enqueues `n` launches from `first` on, on the queue for which the recording was created. */
enum xm_status xm_queue_replay(struct xm_queue *q, const struct xm_recording *rec,
                               uint32_t first, uint32_t n, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
