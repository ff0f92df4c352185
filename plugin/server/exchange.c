/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/exchange.h"

#include <string.h>

#include "plugin/server/server.h"
#include "runtime/util/memory.h"

enum xm_status
xm_exchange_create(struct xm_server *server, struct xm_exchange **out,
                   struct xm_error *err)
{
    struct xm_exchange *x = xm_calloc(1, sizeof(*x));
    *out = NULL;
    if (!x || pthread_mutex_init(&x->lock, NULL) != 0) {
        xm_free(x);
        return xm_no_memory(err, "a request");
    }
    x->server = server;
    x->refs = 1;
    *out = x;
    return XM_OK;
}

void
xm_exchange_ref(struct xm_exchange *x)
{
    xm_refs_add(&x->refs);
}

void
xm_exchange_unref(struct xm_exchange *x)
{
    if (!x || xm_refs_drop(&x->refs) > 0)
        return;
    if (x->free_work)
        x->free_work(x->work);
    xm_strbuf_free(&x->request.body);
    xm_strbuf_free(&x->out);
    pthread_mutex_destroy(&x->lock);
    xm_free(x);
}

void
xm_exchange_lock(struct xm_exchange *x)
{
    pthread_mutex_lock(&x->lock);
}

void
xm_exchange_unlock(struct xm_exchange *x)
{
    pthread_mutex_unlock(&x->lock);
}

static void
tell(struct xm_exchange *x)
{
    if (x->on_change)
        x->on_change(x->ctx);
}

/* ---- answering ----------------------------------------------------------------------------- */

static void
set_status(struct xm_exchange *x, int status, const char *type)
{
    x->status = status;
    x->type = type;
    xm_request_counts_add(&x->server->requests, x->route, status);
}

void
xm_exchange_answer(struct xm_exchange *x, int status, const char *type, const char *text,
                   size_t n)
{
    if (x->status != 0)
        return;
    set_status(x, status, type);
    xm_strbuf_add_n(&x->out, text, n);
    x->is_over = true;
    tell(x);
}

void
xm_exchange_begin_stream(struct xm_exchange *x, const char *type)
{
    if (x->status != 0)
        return;
    set_status(x, 200, type);
    x->is_stream = true;
    tell(x);
}

bool
xm_exchange_add(struct xm_exchange *x, const char *text, size_t n)
{
    if (x->is_gone || x->is_over)
        return false;
    xm_strbuf_add_n(&x->out, text, n);
    if (x->out.n - x->n_sent > XM_MOST_WAITING_BYTES)
        x->is_gone = true;
    tell(x);
    return !x->is_gone && xm_strbuf_ok(&x->out);
}

void
xm_exchange_end(struct xm_exchange *x)
{
    x->is_over = true;
    tell(x);
}

/* ---- transports ---------------------------------------------------------------------------- */

static void
cancel(struct xm_exchange *x, bool is_gone)
{
    xm_exchange_lock(x);
    x->is_gone |= is_gone;
    if (!x->is_over && x->cancel)
        x->cancel(x->work);
    if (is_gone)
        tell(x);
    xm_exchange_unlock(x);
}

void
xm_exchange_leave(struct xm_exchange *x)
{
    cancel(x, true);
}

void
xm_exchange_stop(struct xm_exchange *x)
{
    cancel(x, false);
}

size_t
xm_exchange_take(struct xm_exchange *x, char *to, size_t most)
{
    const size_t left = x->out.n - x->n_sent, n = left < most ? left : most;
    if (n > 0)
        memcpy(to, x->out.text + x->n_sent, n);
    x->n_sent += n;
    /* saves memory for clients that always lag a little */
    if (x->n_sent > x->out.n / 2) {
        xm_strbuf_drop(&x->out, x->n_sent);
        x->n_sent = 0;
    }
    return n;
}
