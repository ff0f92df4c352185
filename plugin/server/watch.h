/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that watches connections: for clients that go away while nobody reads from them, and for
 * those that take too long. It sleeps in between.
 */
#ifndef XM_PLUGIN_SERVER_WATCH_H
#define XM_PLUGIN_SERVER_WATCH_H

#include "plugin/server/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_watch;
struct xm_watched; /* a connection */

/* A connection is closed `patience` seconds after it has begun to wait for its client. */
enum xm_status xm_watch_create(double patience, struct xm_watch **out,
                               struct xm_error *err);
void xm_watch_destroy(struct xm_watch *w); /* NULL is allowed */

/* A connection has been made, and waits for its client. NULL: there is no memory. The caller keeps
 * the socket open until it is removed. */
struct xm_watched *xm_watch_add(struct xm_watch *w, int fd);
void xm_watch_remove(struct xm_watch *w, struct xm_watched *c);

/* It waits for the server, no longer for its client. */
void xm_watch_forget_deadline(struct xm_watch *w, struct xm_watched *c);
/* It waits for its client from now on. Any thread, with any lock. */
void xm_watch_expect(struct xm_watch *w, struct xm_watched *c);

/* From now on xm_exchange_leave is called once its client goes away. */
void xm_watch_begin(struct xm_watch *w, struct xm_watched *c, struct xm_exchange *x);
/* The exchange has ended, and the next request is waited for. */
void xm_watch_end(struct xm_watch *w, struct xm_watched *c);
/* Whether the client has closed its side. */
bool xm_watch_is_gone(struct xm_watch *w, const struct xm_watched *c);
/* Calls xm_exchange_stop for all exchanges. */
void xm_watch_stop_all(struct xm_watch *w);

#ifdef __cplusplus
}
#endif
#endif
