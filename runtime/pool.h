/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch memory of a device, lent again and again.
 *
 *   shared   only kernels touch it: a released buffer goes to the next who asks. All
 * layers of a program run one after the other in one queue, so they take turns in the
 * same bytes; commands still under way are before the next ones in the queue's order.
 *   private  the host writes it while commands of earlier layers may still be under way:
 * never handed on, freed on release.
 *
 * A buffer that is shared must therefore stay with one in-order queue: one pool per
 * request.
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
    uint64_t now_bytes; /* lent and idle                      */
    uint64_t peak_bytes;
    uint64_t idle_bytes; /* of now_bytes: waiting to be reused */
    uint64_t acquired;   /* calls so far …                     */
    uint64_t reused;     /* … and those served from idle ones  */
};

/* A pool that never holds more than `budget_bytes` (0: no limit but the device's).
 * Thread-safe. Keeps the engine alive. */
enum xm_status xm_pool_create(struct xm_engine *engine, uint64_t budget_bytes,
                              struct xm_pool **out, struct xm_error *err);
/* Frees the idle buffers; every lent one must have been released. NULL is allowed. */
void xm_pool_destroy(struct xm_pool *pool);

/* A buffer of at least `bytes`; the contents are undefined. XM_NO_MEMORY says what is in
 * use and how much would still fit. */
enum xm_status xm_pool_acquire(struct xm_pool *pool, uint64_t bytes, enum xm_pool_use use,
                               struct xm_buffer **out, struct xm_error *err);
/* Takes back a buffer of this pool; NULL is allowed. */
void xm_pool_release(struct xm_pool *pool, struct xm_buffer *b);
/* Frees what is idle. */
void xm_pool_trim(struct xm_pool *pool);
void xm_pool_get_stats(struct xm_pool *pool, struct xm_pool_stats *out);

#ifdef __cplusplus
}
#endif
#endif
