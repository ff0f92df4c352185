/* SPDX-License-Identifier: Apache-2.0
 *
 * A request and its answer, between a transport (http.h) and the functions that answer:
 *
 *     transport ──► request ──► xm_server_handle ──► answer at once
 *         ▲                            └──► texts ──► engines' threads ──► more of the answer
 *         └──── on_change: there is more to send ───────────────┘
 *
 * An answer is one text, or a stream whose parts are sent when they are made. The lock guards the
 * answer and the work that makes it (`work`). It may be taken before the locks of an engine and of
 * a transport, never while one of these is held.
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

/* A request as it was received. The transport owns the texts until the handler has returned. */
struct xm_request {
    const char *method, *path;
    /* Values of headers; NULL: not given. */
    const char *host, *origin, *authorization, *api_key, *content_type;
    struct xm_strbuf body;
};

#define XM_TYPE_JSON   "application/json"
#define XM_TYPE_EVENTS "text/event-stream"

/* Maximum number of bytes of a stream that wait for a client; a slower client is disconnected. */
enum { XM_MOST_WAITING_BYTES = 4 << 20 };

struct xm_exchange {
    struct xm_server *server;
    struct xm_request request;
    const struct xm_route *route; /* NULL: not found yet, or no route fits */
    int refs; /* one reference of the transport, and one of each text */

    pthread_mutex_t lock; /* guards the following members */
    int status;           /* HTTP status; 0: not known yet */
    const char *type;     /* of the content; static */
    const char *allow; /* the allowed methods, if the request has another; NULL: none */
    struct xm_strbuf out; /* a stream's bytes that have not been sent start at n_sent */
    size_t n_sent;
    bool is_stream, is_over;
    bool is_gone; /* nobody reads the answer any more */
    /* Tells the transport that the answer has begun, continues or is over. Called with the lock.
     * NULL: not called. */
    void (*on_change)(void *ctx);
    void *ctx;
    /* The work that makes the answer. Owned: freed with the exchange. `cancel` is called with the
     * lock. */
    void *work;
    void (*cancel)(void *work);
    void (*free_work)(void *work);
};

/* Creates an exchange with one reference, which the caller owns. */
enum xm_status xm_exchange_create(struct xm_server *server, struct xm_exchange **out,
                                  struct xm_error *err);
void xm_exchange_ref(struct xm_exchange *x);
void xm_exchange_unref(struct xm_exchange *x); /* NULL is allowed */
void xm_exchange_lock(struct xm_exchange *x);
void xm_exchange_unlock(struct xm_exchange *x);

/* ---- functions that answer; the caller holds the lock ---- */

/* Sets the whole answer; the text is copied. No effect if the answer has begun. */
void xm_exchange_answer(struct xm_exchange *x, int status, const char *type,
                        const char *text, size_t n);
void xm_exchange_begin_stream(struct xm_exchange *x, const char *type);
/* Appends to the stream. Returns false if nobody reads it, or too slowly, or memory is missing:
 * then the work can end. */
bool xm_exchange_add(struct xm_exchange *x, const char *text, size_t n);
void xm_exchange_end(struct xm_exchange *x);

/* ---- for transports ---- */

/* Cancels the work, because the client has gone. Any thread, without the lock. */
void xm_exchange_leave(struct xm_exchange *x);
/* Cancels the work; the answer then says so. Any thread. */
void xm_exchange_stop(struct xm_exchange *x);
/* Moves at most `most` bytes of the stream to `to`, with the lock. Returns their number; 0: there
 * are none now. */
size_t xm_exchange_take(struct xm_exchange *x, char *to, size_t most);

#ifdef __cplusplus
}
#endif
#endif
