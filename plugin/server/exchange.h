/* SPDX-License-Identifier: Apache-2.0
 *
 * A request and the answer that comes into being for it, between a transport and those who answer:
 *
 *     transport ──► request ──► xm_server_handle ──► answer at once
 *         ▲                            └──► texts ──► engines' threads ──► more of the answer
 *         └──── on_change: there is more to send ───────────────┘
 *
 * An answer is one text, or a stream whose parts are sent as they come. The lock guards the answer,
 * and what works for it (`work`). It may be taken before an engine's and a transport's own locks,
 * never behind them.
 */
#ifndef XM_PLUGIN_SERVER_EXCHANGE_H
#define XM_PLUGIN_SERVER_EXCHANGE_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_server;
struct xm_route;

/* As it came. Texts are the transport's until the exchange is answered by the handler. */
struct xm_request {
    const char *method, *path;
    /* Values of headers; NULL: not given. */
    const char *host, *origin, *authorization, *api_key, *content_type;
    struct xm_strbuf body;
};

#define XM_TYPE_JSON   "application/json"
#define XM_TYPE_EVENTS "text/event-stream"

/* Most bytes of a stream that wait for a client; one that reads more slowly is given up. */
enum { XM_MOST_WAITING_BYTES = 4 << 20 };

struct xm_exchange {
    struct xm_server *server;
    struct xm_request request;
    const struct xm_route *route; /* NULL: not found yet, or there is none */
    int refs;                     /* the transport's, and one of each text */

    pthread_mutex_t lock; /* guards the rest */
    int status;           /* of HTTP; 0: not known yet */
    const char *type;     /* of the content; static */
    const char *allow;    /* methods, where another was asked for; NULL: none */
    struct xm_strbuf out; /* not sent yet, from n_sent on; of a stream */
    size_t n_sent;
    bool is_stream, is_over;
    bool is_gone; /* nobody reads the answer any more */
    /* The transport's: the answer has begun, goes on or is over. Called with the lock. NULL: nobody
     * listens. */
    void (*on_change)(void *ctx);
    void *ctx;
    /* What makes the answer. Owned: freed with the exchange; `cancel` is called with the lock. */
    void *work;
    void (*cancel)(void *work);
    void (*free_work)(void *work);
};

/* With one reference, the caller's. */
enum xm_status xm_exchange_create(struct xm_server *server, struct xm_exchange **out,
                                  struct xm_error *err);
void xm_exchange_ref(struct xm_exchange *x);
void xm_exchange_unref(struct xm_exchange *x); /* NULL is allowed */
void xm_exchange_lock(struct xm_exchange *x);
void xm_exchange_unlock(struct xm_exchange *x);

/* ---- for those who answer, with the lock ---- */

/* The whole answer; the text is copied. Does nothing where the answer has begun. */
void xm_exchange_answer(struct xm_exchange *x, int status, const char *type,
                        const char *text, size_t n);
void xm_exchange_begin_stream(struct xm_exchange *x, const char *type);
/* False: nobody reads it, or too slowly, or there is no memory: the work can end. */
bool xm_exchange_add(struct xm_exchange *x, const char *text, size_t n);
void xm_exchange_end(struct xm_exchange *x);

/* ---- for transports ---- */

/* The client has gone, without the lock: cancels the work. Any thread. */
void xm_exchange_leave(struct xm_exchange *x);
/* Cancels the work, whose answer then says so. Any thread. */
void xm_exchange_stop(struct xm_exchange *x);
/* Moves at most `most` bytes of the stream, with the lock; 0: there are none now. */
size_t xm_exchange_take(struct xm_exchange *x, char *to, size_t most);

#ifdef __cplusplus
}
#endif
#endif
