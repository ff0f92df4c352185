/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that watches connections for clients that disconnect while nobody reads from them, and
 * for clients that take too long. It sleeps in between.
 */
#ifndef XM_PLUGIN_SERVER_WATCH_H
#define XM_PLUGIN_SERVER_WATCH_H

#include "plugin/server/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_watch;
struct xm_watched; /* a connection */

/* Creates a watch that closes connections `patience` seconds after they began to wait for the
 * client. */
enum xm_status xm_watch_create(double patience, struct xm_watch **out,
                               struct xm_error *err);
void xm_watch_destroy(struct xm_watch *w); /* NULL is allowed */

/* Adds a new connection, which waits for its client. NULL: no memory. The caller keeps the socket
 * open until xm_watch_remove. */
struct xm_watched *xm_watch_add(struct xm_watch *w, int fd);
void xm_watch_remove(struct xm_watch *w, struct xm_watched *c);

/* The connection now waits for the server: removes its deadline. */
void xm_watch_forget_deadline(struct xm_watch *w, struct xm_watched *c);
/* The connection now waits for its client: sets its deadline. Any thread, with any lock held. */
void xm_watch_expect(struct xm_watch *w, struct xm_watched *c);

/* From now on calls xm_exchange_leave when the client disconnects. */
void xm_watch_begin(struct xm_watch *w, struct xm_watched *c, struct xm_exchange *x);
/* The exchange has ended; the connection waits for the next request. */
void xm_watch_end(struct xm_watch *w, struct xm_watched *c);
/* Whether the client has closed its side. */
bool xm_watch_is_gone(struct xm_watch *w, const struct xm_watched *c);
/* Calls xm_exchange_stop for all exchanges. */
void xm_watch_stop_all(struct xm_watch *w);

#ifdef __cplusplus
}
#endif
#endif
