/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of host threads for parallel loops.
 *
 *     caller ──► items 0 .. n-1 ──► each is done once, by the caller or by one of the threads
 *            ◄── all are done
 *
 * Between calls the threads sleep. They block all signals, so that a signal's handler runs in a
 * thread of the program.
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

/* The number of cores that this process may use, at most XM_MOST_WORKERS. */
size_t xm_workers_cores(void);

/* Creates `n` workers, 1 to XM_MOST_WORKERS; the calling thread is one of them. There are fewer if
 * the system refuses threads. NULL: no memory. */
struct xm_workers *xm_workers_create(size_t n);
void xm_workers_free(struct xm_workers *w); /* NULL is allowed */

/* The number of workers, the caller's thread included. */
size_t xm_workers_count(const struct xm_workers *w);

/* Calls work(item, worker, ctx) for each item 0 … n - 1, in any order, and returns when all calls
 * have returned. `worker` is the number of the thread, below the n of xm_workers_create: calls with
 * the same number never overlap, so it may index scratch memory. */
void xm_workers_run(struct xm_workers *w, size_t n,
                    void (*work)(size_t item, size_t worker, void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
