/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of device scratch memory.
 *
 *   shared   only kernels access the buffer: a released buffer serves the next request for memory.
 *            All layers of a program run in order in one queue, so they reuse the same bytes:
 *            commands that still use them precede the next commands in the queue.
 *   private  the host writes the buffer while commands of earlier layers may still run: it is
 *            freed on release and never reused.
 *
 * A shared buffer must therefore stay with one in-order queue: one pool per request.
 */
#ifndef XM_RUNTIME_POOL_H
#define XM_RUNTIME_POOL_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_pool;

enum xm_pool_use { XM_POOL_SHARED, XM_POOL_PRIVATE };

struct xm_pool_stats {
    uint64_t now_bytes; /* bytes in use and idle              */
    uint64_t peak_bytes;
    uint64_t idle_bytes; /* of now_bytes: waiting to be reused */
    uint64_t acquired;   /* calls of xm_pool_acquire           */
    uint64_t reused;     /* calls of xm_pool_acquire that got an idle buffer */
};

/* Creates a pool that never holds more than `budget_bytes` (0: no limit but the device's memory).
 * The pool is thread-safe and keeps the engine alive. */
enum xm_status xm_pool_create(struct xm_engine *engine, uint64_t budget_bytes,
                              struct xm_pool **out, struct xm_error *err);
/* Frees the idle buffers; every acquired buffer must have been released. NULL is allowed. */
void xm_pool_destroy(struct xm_pool *pool);

/* Lends a buffer of at least `bytes`; its contents are undefined. The pool owns it. XM_NO_MEMORY:
 * the message says how many bytes are in use and how many would still fit. */
enum xm_status xm_pool_acquire(struct xm_pool *pool, uint64_t bytes, enum xm_pool_use use,
                               struct xm_buffer **out, struct xm_error *err);
/* Gives a buffer of this pool back; NULL is allowed. */
void xm_pool_release(struct xm_pool *pool, struct xm_buffer *b);
/* Frees the idle buffers. */
void xm_pool_trim(struct xm_pool *pool);
void xm_pool_get_stats(struct xm_pool *pool, struct xm_pool_stats *out);

#ifdef __cplusplus
}
#endif
#endif
