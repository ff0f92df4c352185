/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording holds launches of one queue with their arguments bound, so that enqueuing them again
 * costs only the driver's call. It holds references to their buffers. It is used by the thread that
 * uses the queue.
 */
#ifndef XM_RUNTIME_RECORDING_H
#define XM_RUNTIME_RECORDING_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_recording;

/* *out is the caller's; free it with xm_recording_destroy. XM_UNSUPPORTED: the engine cannot
 * record. */
enum xm_status xm_recording_create(struct xm_queue *q, struct xm_recording **out,
                                   struct xm_error *err);
/* No queue records to it any more. NULL is allowed. */
void xm_recording_destroy(struct xm_recording *rec);
/* What is launched on the queue from now on is also recorded behind the launches that `rec` has;
 * NULL: nothing is. Launches that cannot be recorded, and all other commands, are missed. */
void xm_queue_record(struct xm_queue *q, struct xm_recording *rec);
/* What is launched on the queue from now on takes the place of launches [first, first + n) of the
 * recording, one after the other: of their arguments only those are bound that differ from what is
 * bound. A launch that does not fit (another kernel, other local sizes, more than n) is enqueued as
 * it is, and so are those behind it; they are missed. xm_queue_record with NULL ends this. */
void xm_queue_patch(struct xm_queue *q, struct xm_recording *rec, uint32_t first,
                    uint32_t n);
/* Records where `rec` is empty, else takes the place of all its launches. NULL: neither. */
void xm_queue_repeat(struct xm_queue *q, struct xm_recording *rec);
/* How many launches it has. */
uint32_t xm_recording_launches(const struct xm_recording *rec);
/* How many commands were enqueued while the queue recorded to it that it does not have; truncating
 * does not lower the number. */
uint64_t xm_recording_missed(const struct xm_recording *rec);
/* Drops the launches from `n` on. */
void xm_recording_truncate(struct xm_recording *rec, uint32_t n);
/* Enqueues `n` launches from `first` on, on the queue for which the recording was created; first +
 * n is at most xm_recording_launches. Fails as xm_queue_run does. They are not recorded again. */
enum xm_status xm_queue_replay(struct xm_queue *q, const struct xm_recording *rec,
                               uint32_t first, uint32_t n, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
