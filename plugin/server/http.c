/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks: each connection's exchange has one (exchange.h), and `lock` guards the list of
 * connections. No thread that holds one of them waits for the other or for a lock of libmicrohttpd,
 * with one exception: connections are resumed while an exchange's lock is held.
 */
#include "plugin/server/http.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "plugin/server/listen.h"
#include "plugin/server/watch.h"
#include "runtime/util/number.h"
#include "runtime/util/utf8.h"

enum {
    THREADS = 4,
    HEADER_BYTES = 32 << 10, /* of all headers of a connection */
    STREAM_BYTES = 16 << 10, /* maximum number of bytes sent at once */
    SPARE = 64,              /* connections beyond the maximum, whose requests get 503 */
};

struct xm_http {
    struct xm_server *server;
    struct MHD_Daemon *daemon;
    struct xm_watch *watch;
    struct xm_listener listener;
    unsigned most;          /* maximum number of connections */
    unsigned n_connections; /* atomic      */
    size_t n_open;          /* atomic      */
};

struct connection {
    struct xm_watched *watched;
    /* the connection exceeds the maximum, as far as is known; used by its thread only */
    bool is_beyond;
};

/* A request on its connection. */
struct request {
    struct xm_http *h;
    struct MHD_Connection *mhd;
    struct xm_watched *watched;
    struct xm_exchange *x;
    bool is_refused; /* by its headers */
    bool is_last;    /* closes the connection after the answer */
    bool is_handled;
    bool is_suspended; /* under the exchange's lock */
};

/* ---- answers --------------------------------------------------------------------------------- */

/* Called with the exchange's lock, in any thread. */
static void
on_change(void *ctx)
{
    struct request *q = ctx;
    if (q->x->is_over)
        xm_watch_expect(q->h->watch, q->watched);
    if (!q->is_suspended)
        return;
    q->is_suspended = false;
    MHD_resume_connection(q->mhd);
}

/* Called with the exchange's lock, in the connection's thread. */
static void
suspend(struct request *q)
{
    q->is_suspended = true;
    MHD_suspend_connection(q->mhd);
}

static ssize_t
read_stream(void *ctx, uint64_t at, char *to, size_t most)
{
    struct request *q = ctx;
    struct xm_exchange *x = q->x;
    (void)at;
    xm_exchange_lock(x);
    const size_t n = xm_exchange_take(x, to, most);
    ssize_t result = (ssize_t)n;
    if (n == 0 && (x->is_gone || !xm_strbuf_ok(&x->out)))
        result = MHD_CONTENT_READER_END_WITH_ERROR;
    else if (n == 0 && x->is_over)
        result = MHD_CONTENT_READER_END_OF_STREAM;
    else if (n == 0)
        suspend(q);
    xm_exchange_unlock(x);
    return result;
}

static const char *
header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static void
add_headers(const struct request *q, struct MHD_Response *response)
{
    const struct xm_exchange *x = q->x;
    const char *origin = xm_server_allows_origin(q->h->server, x->request.origin);
    MHD_add_response_header(response, "Content-Type", x->type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "X-Frame-Options", "DENY");
    if (strncmp(x->type, "text/html", 9) == 0)
        MHD_add_response_header(
            response, "Content-Security-Policy",
            "default-src 'self'; base-uri 'none'; form-action 'none'");
    if (x->is_stream)
        MHD_add_response_header(response, "Cache-Control", "no-cache");
    if (x->allow && (x->status == 405 || x->status == 204))
        MHD_add_response_header(response, "Allow", x->allow);
    if (x->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (x->status == 429 || x->status == 503)
        MHD_add_response_header(response, "Retry-After", "1");
    if (!origin)
        return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(response, "Vary", "Origin");
    if (x->status == 204 && x->allow) {
        MHD_add_response_header(response, "Access-Control-Allow-Methods", x->allow);
        /* allows any header, because clients have headers of their own, such as
         * anthropic-version */
        const char *wanted = header(q->mhd, "Access-Control-Request-Headers");
        MHD_add_response_header(response, "Access-Control-Allow-Headers",
                                wanted ? wanted
                                       : "Authorization, Content-Type, X-Api-Key");
        MHD_add_response_header(response, "Access-Control-Max-Age", "600");
    }
}

/* Queues the answer. Called without the exchange's lock, because functions that send the answer
 * take it while they hold the library's. If the client has disconnected, the connection is closed
 * after the answer. */
static enum MHD_Result
queue(struct request *q, bool is_gone)
{
    static char no_memory[] = "{\"error\":{\"message\":\"out of memory\",\"type\":"
                              "\"server_error\",\"param\":null,\"code\":null}}";
    struct xm_exchange *x = q->x;
    struct MHD_Response *response;
    int status = x->status;
    if (x->is_stream) {
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BYTES,
                                                     read_stream, q, NULL);
    } else if (xm_strbuf_ok(&x->out)) {
        response =
            MHD_create_response_from_buffer(x->out.n, x->out.text, MHD_RESPMEM_MUST_COPY);
    } else {
        status = 503;
        response = MHD_create_response_from_buffer(sizeof(no_memory) - 1, no_memory,
                                                   MHD_RESPMEM_PERSISTENT);
    }
    if (!response)
        return MHD_NO;
    add_headers(q, response);
    if (is_gone || q->is_last)
        MHD_add_response_header(response, "Connection", "close");
    const enum MHD_Result result = MHD_queue_response(q->mhd, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

/* Queues the answer if it has begun, else suspends the connection. Once an answer has begun, only
 * its text changes. */
static enum MHD_Result
answer(struct request *q)
{
    struct xm_exchange *x = q->x;
    /* disconnected before the watch began */
    if (xm_watch_is_gone(q->h->watch, q->watched))
        xm_exchange_leave(x);
    xm_exchange_lock(x);
    const bool has_begun = x->status != 0, is_gone = x->is_gone;
    if (!has_begun && !is_gone)
        suspend(q);
    xm_exchange_unlock(x);
    return has_begun ? queue(q, is_gone) : is_gone ? MHD_NO : MHD_YES;
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct connection *
connection_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static struct request *
open_request(struct xm_http *h, struct MHD_Connection *c, const char *url,
             const char *method)
{
    struct request *q = xm_calloc(1, sizeof(*q));
    const struct connection *connection = connection_of(c);
    if (!q || !connection || xm_exchange_create(h->server, &q->x, NULL) != XM_OK) {
        xm_free(q);
        return NULL;
    }
    q->h = h;
    q->mhd = c;
    q->watched = connection->watched;
    q->x->request.method = method;
    q->x->request.path = url;
    q->x->request.host = header(c, "Host");
    q->x->request.origin = header(c, "Origin");
    q->x->request.authorization = header(c, "Authorization");
    q->x->request.api_key = header(c, "X-Api-Key");
    q->x->request.content_type = header(c, "Content-Type");
    xm_exchange_lock(q->x);
    q->x->on_change = on_change;
    q->x->ctx = q;
    xm_exchange_unlock(q->x);
    __atomic_add_fetch(&h->n_open, 1, __ATOMIC_RELAXED);
    return q;
}

/* ---- requests that HTTP forbids ---- */

/* A header that may occur only once, or repeatedly with the same value. */
struct seen_header {
    const char *name, *value;
    bool differs;
};

static enum MHD_Result
see_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct seen_header *f = ctx;
    (void)kind;
    if (strcasecmp(name, f->name) != 0)
        return MHD_YES;
    f->differs |= f->value && value && strcmp(f->value, value) != 0;
    f->value = value;
    return MHD_YES;
}

/* Refuses requests whose body's length is ambiguous: proxies could find another end of the body, so
 * that a part of it becomes a request of its own (RFC 9112, 6.3: request smuggling). */
static bool
check_length(const struct request *q, struct xm_refusal *r)
{
    struct seen_header length = {"Content-Length", NULL, false},
                       coding = {"Transfer-Encoding", NULL, false};
    MHD_get_connection_values(q->mhd, MHD_HEADER_KIND, see_header, &length);
    MHD_get_connection_values(q->mhd, MHD_HEADER_KIND, see_header, &coding);
    if (coding.value && (coding.differs || strcasecmp(coding.value, "chunked") != 0))
        return xm_refuse(
            r, 501, NULL, "unknown_coding",
            "the request's Transfer-Encoding is '%s', but only 'chunked' is supported",
            xm_utf8_shown(xm_slice_of(coding.value, strlen(coding.value))).text);
    if (coding.value && length.value)
        return xm_refuse(r, 400, NULL, "invalid_request",
                         "the request has both Content-Length and Transfer-Encoding");
    return !length.differs || xm_refuse(r, 400, NULL, "invalid_request",
                                        "the request has Content-Length twice");
}

/* Refuses the request if its connection exceeds the maximum, unless others have closed since. */
static bool
check_bound(const struct request *q, struct xm_refusal *r)
{
    struct connection *c = connection_of(q->mhd);
    c->is_beyond &= __atomic_load_n(&q->h->n_connections, __ATOMIC_RELAXED) > q->h->most;
    return !c->is_beyond ||
           xm_refuse(r, 503, NULL, NULL,
                     "the server has %u connections and accepts no more at present",
                     q->h->most);
}

static bool
check_request(struct request *q, const char *version)
{
    struct xm_refusal r = {0};
    if (check_bound(q, &r) && check_length(q, &r) && !q->x->request.host &&
        strcasecmp(version, "HTTP/1.0") != 0)
        xm_refuse(&r, 400, NULL, "invalid_request", "the request has no Host header");
    if (r.status == 0)
        return true;
    q->is_last = true;
    xm_refusal_answer(&r, q->x);
    return false;
}

/* The request's headers are complete. A refusal is answered at once even if a body follows, which
 * is then not read. */
static enum MHD_Result
begin(struct request *q, const char *version)
{
    const char *length = header(q->mhd, "Content-Length");
    uint64_t body = 0;
    const bool has_length = length && xm_parse_whole(length, &body);
    const bool has_body =
        header(q->mhd, "Transfer-Encoding") || (length && (!has_length || body > 0));
    q->is_refused = !check_request(q, version) || !xm_server_admit(q->x, body);
    q->is_handled = q->is_refused;
    return q->is_refused && has_body ? answer(q) : MHD_YES;
}

static void
take_body(struct request *q, const char *bytes, size_t n)
{
    struct xm_strbuf *body = &q->x->request.body;
    if (body->n <= q->h->server->most_body) /* a larger body is refused anyway */
        xm_strbuf_add_n(body, bytes, n);
}

static enum MHD_Result
on_request(void *ctx, struct MHD_Connection *c, const char *url, const char *method,
           const char *version, const char *bytes, size_t *n, void **state)
{
    struct request *q = *state;
    if (!q) {
        q = open_request(ctx, c, url, method);
        *state = q;
        return q ? begin(q, version) : MHD_NO;
    }
    if (*n > 0) {
        take_body(q, bytes, *n);
        *n = 0;
        return MHD_YES;
    }
    if (!q->is_handled) {
        q->is_handled = true;
        xm_watch_forget_deadline(q->h->watch, q->watched);
        xm_watch_begin(q->h->watch, q->watched, q->x);
        xm_server_handle(q->x);
    }
    return answer(q);
}

/* The request was answered, or the client has disconnected. */
static void
on_completed(void *ctx, struct MHD_Connection *c, void **state,
             enum MHD_RequestTerminationCode why)
{
    struct request *q = *state;
    (void)ctx;
    (void)c;
    (void)why;
    if (!q)
        return;
    xm_watch_end(q->h->watch, q->watched);
    xm_exchange_lock(q->x);
    q->x->on_change = NULL;
    const bool is_over = q->x->is_over;
    xm_exchange_unlock(q->x);
    if (!is_over)
        xm_exchange_leave(q->x);
    __atomic_sub_fetch(&q->h->n_open, 1, __ATOMIC_RELAXED);
    xm_exchange_unref(q->x);
    xm_free(q);
    *state = NULL;
}

static struct connection *
open_connection(struct xm_http *h, int fd)
{
    struct connection *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->watched = xm_watch_add(h->watch, fd);
    if (!c->watched) {
        xm_free(c);
        return NULL;
    }
    c->is_beyond = __atomic_add_fetch(&h->n_connections, 1, __ATOMIC_RELAXED) > h->most;
    return c;
}

static void
on_connection(void *ctx, struct MHD_Connection *c, void **state,
              enum MHD_ConnectionNotificationCode what)
{
    struct xm_http *h = ctx;
    struct connection *ended = *state;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *state = info ? open_connection(h, info->connect_fd) : NULL;
    } else if (ended) {
        __atomic_sub_fetch(&h->n_connections, 1, __ATOMIC_RELAXED);
        xm_watch_remove(h->watch, ended->watched);
        xm_free(ended);
        *state = NULL;
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Drops the library's messages: they concern clients, which get an HTTP status. */
static void
say_nothing(void *ctx, const char *format, va_list ap)
{
    (void)ctx;
    (void)format;
    (void)ap;
}

/* Certificate and key for MHD_start_daemon; nothing if the options have none. */
static void
describe_tls(const struct xm_http_options *o, struct MHD_OptionItem out[3])
{
    out[0] = (struct MHD_OptionItem){o->cert ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END,
                                     0, (void *)(uintptr_t)o->cert};
    out[1] =
        (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->key};
    out[2] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

/* Starts a daemon without a socket, because the library checks certificates only then. */
static enum xm_status
check_tls(const struct xm_http_options *o, struct xm_error *err)
{
    struct MHD_OptionItem tls[3];
    if (!o->cert)
        return XM_OK;
    describe_tls(o, tls);
    struct MHD_Daemon *d =
        MHD_start_daemon(MHD_USE_TLS | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0,
                         NULL, NULL, on_request, NULL, MHD_OPTION_EXTERNAL_LOGGER,
                         say_nothing, NULL, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!d)
        return xm_fail(err, XM_INVALID,
                       "certificate and key must belong together and be in PEM format");
    MHD_stop_daemon(d);
    return XM_OK;
}

enum xm_status
xm_http_check(const struct xm_http_options *options, struct xm_error *err)
{
    struct xm_listener l;
    if (xm_listener_is_given()) {
        XM_TRY(xm_listener_take_given(&l, err)); /* it stays open */
    } else {
        XM_TRY(xm_listen(options->host, options->port, &l, err));
        xm_listener_close(&l);
    }
    return check_tls(options, err);
}

static enum xm_status
start_daemon(struct xm_http *h, const struct xm_http_options *o, struct xm_error *err)
{
    const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL |
                           MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                           (o->cert ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls[3];
    sigset_t all, before;
    describe_tls(o, tls);
    sigfillset(&all); /* the main thread handles signals */
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    /* not MHD_OPTION_STRICT_FOR_CLIENT, which answers with HTML pages: check_request refuses */
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, say_nothing,
        NULL, MHD_OPTION_LISTEN_SOCKET, h->listener.fd, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT, o->connections + SPARE,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, h, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (h->daemon)
        h->listener.fd = -1; /* the daemon closes it */
    return h->daemon ? XM_OK : xm_fail(err, XM_IO, "the server cannot start");
}

enum xm_status
xm_http_start(struct xm_server *server, const struct xm_http_options *options,
              struct xm_http **out, struct xm_error *err)
{
    struct xm_http *h = xm_calloc(1, sizeof(*h));
    *out = NULL;
    if (!h)
        return xm_no_memory(err, "the server");
    h->server = server;
    h->most = options->connections;
    h->listener.fd = -1;
    enum xm_status s = check_tls(options, err);
    if (s == XM_OK)
        s = xm_listener_is_given()
                ? xm_listener_take_given(&h->listener, err)
                : xm_listen(options->host, options->port, &h->listener, err);
    server->host = h->listener.is_loopback ? options->host : NULL;
    if (s == XM_OK)
        s = xm_watch_create(options->patience, &h->watch, err);
    if (s == XM_OK)
        s = start_daemon(h, options, err);
    if (s == XM_OK)
        *out = h;
    else
        xm_http_stop(h);
    return s;
}

uint16_t
xm_http_port(const struct xm_http *h)
{
    return h->listener.port;
}

bool
xm_http_is_loopback(const struct xm_http *h)
{
    return h->listener.is_loopback;
}

size_t
xm_http_n_open(struct xm_http *h)
{
    return __atomic_load_n(&h->n_open, __ATOMIC_RELAXED);
}

void
xm_http_cancel(struct xm_http *h)
{
    xm_watch_stop_all(h->watch);
}

void
xm_http_stop(struct xm_http *h)
{
    if (!h)
        return;
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    xm_listener_close(&h->listener);
    xm_watch_destroy(h->watch);
    xm_free(h);
}
