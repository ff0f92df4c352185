/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that share out items of work on the host.
 *
 *     caller ──► items 0 .. n-1 ──► each is done once, by the caller or by one of the threads
 *            ◄── all are done
 *
 * Threads wait between calls and are woken for one. They take no signals.
 */
#ifndef XM_RUNTIME_UTIL_WORKERS_H
#define XM_RUNTIME_UTIL_WORKERS_H

#include <stddef.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_workers; /* used by one thread at a time */

enum { XM_MOST_WORKERS = 64 };

/* The cores that this process may use, at most XM_MOST_WORKERS. */
size_t xm_workers_cores(void);

/* `n` workers, 1 to XM_MOST_WORKERS, the caller's thread among them. Where the system refuses
 * threads there are fewer. NULL: no memory. */
struct xm_workers *xm_workers_create(size_t n);
void xm_workers_free(struct xm_workers *w); /* NULL is allowed */

/* Calls `work` for each of n items and returns when all calls have returned. `worker` is a number
 * below that of xm_workers_create; no two calls that run at once have the same. */
void xm_workers_run(struct xm_workers *w, size_t n,
                    void (*work)(size_t item, size_t worker, void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
