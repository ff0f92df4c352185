/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's sockets, using libmicrohttpd: a few threads serve all connections. A connection
 * without an answer yet is suspended, and resumed when there is something to send. One thread
 * watches all connections for clients that disconnect or take too long:
 *
 *     a request must be complete `patience` seconds after the connection was made or the previous
 *     answer was sent; an answer must be read `patience` seconds after its end
 *
 * A client that closes its side of the connection before the answer is complete has disconnected:
 * its texts end with the next step.
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
    uint16_t port;          /* 0: any free port */
    double patience;        /* seconds                              */
    unsigned connections;   /* maximum number; requests on 64 more get 503 */
    const char *cert, *key; /* PEM texts, for TLS; NULL: no TLS */
};

struct xm_http;

/* Checks the options before models are read, which takes longer: whether the port can be listened
 * on, and whether certificate and key belong together. XM_NOT_FOUND, XM_BUSY, XM_IO: about host and
 * port, as in xm_listen. XM_INVALID: about certificate and key. */
enum xm_status xm_http_check(const struct xm_http_options *options, struct xm_error *err);
/* Listens and answers from then on; sets the server's host. It uses the socket that a service
 * manager has opened, if there is one (listen.h). The server must outlive it. XM_BUSY: the port is
 * in use. */
enum xm_status xm_http_start(struct xm_server *server,
                             const struct xm_http_options *options, struct xm_http **out,
                             struct xm_error *err);
uint16_t xm_http_port(const struct xm_http *h);
/* Whether the address can only be reached from this machine. */
bool xm_http_is_loopback(const struct xm_http *h);
/* Returns the number of requests that are being answered. */
size_t xm_http_n_open(struct xm_http *h);
/* Cancels the texts of all requests; the answers say that the server stops. */
void xm_http_cancel(struct xm_http *h);
/* Closes all connections. NULL is allowed. */
void xm_http_stop(struct xm_http *h);

#ifdef __cplusplus
}
#endif
#endif
