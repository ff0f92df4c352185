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

/* Creates an empty recording for the queue's engine. The caller frees *out with
 * xm_recording_destroy. XM_UNSUPPORTED: the engine cannot record. */
enum xm_status xm_recording_create(struct xm_queue *q, struct xm_recording **out,
                                   struct xm_error *err);
/* Frees the recording; no queue may still record to it. NULL is allowed. */
void xm_recording_destroy(struct xm_recording *rec);
/* From now on launches on the queue are also appended to `rec`; NULL: they are not. Launches that
 * cannot be recorded, and all other commands, are missed (xm_recording_missed). */
void xm_queue_record(struct xm_queue *q, struct xm_recording *rec);
/* From now on launches on the queue replace launches [first, first + n) of the recording, in order:
 * each recorded launch gets the new arguments where they differ from the bound ones, and is
 * enqueued. A launch that does not fit (another kernel, another local size, or more than n
 * launches) is enqueued without the recording, and so are all launches after it; they count as
 * missed. xm_queue_record with NULL ends this. */
void xm_queue_patch(struct xm_queue *q, struct xm_recording *rec, uint32_t first,
                    uint32_t n);
/* Records to `rec` if it is empty, else replaces all its launches (xm_queue_patch). NULL:
 * neither. */
void xm_queue_repeat(struct xm_queue *q, struct xm_recording *rec);
/* The number of launches in the recording. */
uint32_t xm_recording_launches(const struct xm_recording *rec);
/* The number of commands that were enqueued while the queue recorded to `rec` and that it does not
 * contain; truncating does not lower it. */
uint64_t xm_recording_missed(const struct xm_recording *rec);
/* Drops launches n and later. */
void xm_recording_truncate(struct xm_recording *rec, uint32_t n);
/* Enqueues launches [first, first + n) of the recording on the queue for which it was created;
 * first + n is at most xm_recording_launches. Fails as xm_queue_run does. These launches are not
 * recorded again. */
enum xm_status xm_queue_replay(struct xm_queue *q, const struct xm_recording *rec,
                               uint32_t first, uint32_t n, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
