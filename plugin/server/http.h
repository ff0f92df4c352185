/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's sockets, through libmicrohttpd: a few threads for all connections. A connection
 * whose answer is not there yet is suspended, and goes on when there is more of it to send. One
 * thread watches all connections for clients that go away or take too long:
 *
 *     a request must have come whole `patience` seconds after the connection was made, or after the
 *     answer before it has been sent; an answer must have been read as long after its end
 *
 * A client that closes its side of the connection before the answer is there has gone away: its
 * texts end with the next step.
 */
#ifndef XM_PLUGIN_SERVER_HTTP_H
#define XM_PLUGIN_SERVER_HTTP_H

#include <stdint.h>

#include "plugin/server/server.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_http_options {
    const char *host;       /* a name or address to listen on       */
    uint16_t port;          /* 0: one that is free                  */
    double patience;        /* seconds                              */
    unsigned connections;   /* at most; requests of 64 more get 503 */
    const char *cert, *key; /* PEM texts, for TLS; NULL: none      */
};

struct xm_http;

/* Listens, on the socket that a service manager has opened if there is one (listen.h), and answers
 * from then on; sets the server's host. The server outlives it. XM_BUSY: the port is in use. */
enum xm_status xm_http_start(struct xm_server *server,
                             const struct xm_http_options *options, struct xm_http **out,
                             struct xm_error *err);
uint16_t xm_http_port(const struct xm_http *h);
/* Whether the address is of this machine alone. */
bool xm_http_is_loopback(const struct xm_http *h);
/* Requests that are being answered. */
size_t xm_http_n_open(struct xm_http *h);
/* Cancels the texts of all requests; each is answered that the server stops. */
void xm_http_cancel(struct xm_http *h);
/* Closes all connections. NULL is allowed. */
void xm_http_stop(struct xm_http *h);

#ifdef __cplusplus
}
#endif
#endif
