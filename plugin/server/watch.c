/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/watch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/memory.h"

enum { EVENTS = 32 };

struct xm_watched {
    struct xm_watched *next, **at; /* guarded by the lock */
    uint64_t id;
    int fd;
    int64_t deadline;      /* atomic: milliseconds of the clock; INT64_MAX: none */
    bool is_gone;          /* guarded by the lock */
    struct xm_exchange *x; /* referenced, guarded by the lock; NULL: none */
};

struct xm_watch {
    double patience;
    int epoll, wake;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock;
    bool stops;
    struct xm_watched *all;
    uint64_t last_id;
};

static int64_t
now_ms(void)
{
    return (int64_t)(1e3 * xm_now());
}

static void
wake(struct xm_watch *w)
{
    const uint64_t one = 1;
    while (write(w->wake, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Shuts down connections whose deadline has passed, which wakes the thread that waits for the
 * socket. Returns the milliseconds until the next deadline; -1: there is none. */
static int
cut_late_ones(struct xm_watch *w)
{
    int64_t next = INT64_MAX;
    const int64_t now = now_ms();
    pthread_mutex_lock(&w->lock);
    for (struct xm_watched *c = w->all; c; c = c->next) {
        const int64_t deadline = __atomic_load_n(&c->deadline, __ATOMIC_RELAXED);
        if (deadline <= now) {
            shutdown(c->fd, SHUT_RDWR);
            __atomic_store_n(&c->deadline, INT64_MAX, __ATOMIC_RELAXED);
        } else if (deadline < next) {
            next = deadline;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return next == INT64_MAX ? -1 : next - now > 60000 ? 60000 : (int)(next - now) + 1;
}

static void
note_gone(struct xm_watch *w, uint64_t id)
{
    struct xm_exchange *x = NULL;
    pthread_mutex_lock(&w->lock);
    struct xm_watched *c = w->all;
    while (c && c->id != id)
        c = c->next;
    if (c) {
        c->is_gone = true;
        x = c->x;
    }
    if (x)
        xm_exchange_ref(x);
    pthread_mutex_unlock(&w->lock);
    if (x)
        xm_exchange_leave(x);
    xm_exchange_unref(x);
}

static void *
watch_on(void *arg)
{
    struct xm_watch *w = arg;
    bool stops = false;
    while (!stops) {
        struct epoll_event events[EVENTS];
        const int n = epoll_wait(w->epoll, events, EVENTS, cut_late_ones(w));
        for (int i = 0; i < n; i++) {
            uint64_t count;
            if (events[i].data.u64)
                note_gone(w, events[i].data.u64);
            else if (read(w->wake, &count, sizeof(count)) < 0)
                continue;
        }
        pthread_mutex_lock(&w->lock);
        stops = w->stops;
        pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum xm_status
start(struct xm_watch *w, struct xm_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};
    sigset_t all, before;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->epoll < 0 || w->wake < 0 ||
        epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &event) != 0)
        return xm_fail(err, XM_IO, "no file descriptors are left");
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->is_started = pthread_create(&w->thread, NULL, watch_on, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return w->is_started ? XM_OK : xm_no_memory(err, "a thread");
}

enum xm_status
xm_watch_create(double patience, struct xm_watch **out, struct xm_error *err)
{
    struct xm_watch *w = xm_calloc(1, sizeof(*w));
    *out = NULL;
    if (!w)
        return xm_no_memory(err, "the server");
    w->patience = patience;
    w->epoll = w->wake = -1;
    pthread_mutex_init(&w->lock, NULL);
    const enum xm_status s = start(w, err);
    if (s == XM_OK)
        *out = w;
    else
        xm_watch_destroy(w);
    return s;
}

void
xm_watch_destroy(struct xm_watch *w)
{
    if (!w)
        return;
    if (w->is_started) {
        pthread_mutex_lock(&w->lock);
        w->stops = true;
        pthread_mutex_unlock(&w->lock);
        wake(w);
        pthread_join(w->thread, NULL);
    }
    if (w->epoll >= 0)
        close(w->epoll);
    if (w->wake >= 0)
        close(w->wake);
    pthread_mutex_destroy(&w->lock);
    xm_free(w);
}

/* ---- connections ----------------------------------------------------------------------------- */

struct xm_watched *
xm_watch_add(struct xm_watch *w, int fd)
{
    struct xm_watched *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->fd = fd;
    pthread_mutex_lock(&w->lock);
    c->id = ++w->last_id;
    c->deadline = now_ms() + (int64_t)(1e3 * w->patience);
    c->next = w->all;
    c->at = &w->all;
    if (c->next)
        c->next->at = &c->next;
    w->all = c;
    pthread_mutex_unlock(&w->lock);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data = {.u64 = c->id}};
    epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event);
    wake(w);
    return c;
}

void
xm_watch_remove(struct xm_watch *w, struct xm_watched *c)
{
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    pthread_mutex_lock(&w->lock);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    pthread_mutex_unlock(&w->lock);
    xm_exchange_unref(c->x);
    xm_free(c);
}

void
xm_watch_forget_deadline(struct xm_watch *w, struct xm_watched *c)
{
    (void)w;
    __atomic_store_n(&c->deadline, INT64_MAX, __ATOMIC_RELAXED);
}

void
xm_watch_expect(struct xm_watch *w, struct xm_watched *c)
{
    __atomic_store_n(&c->deadline, now_ms() + (int64_t)(1e3 * w->patience),
                     __ATOMIC_RELAXED);
    wake(w);
}

void
xm_watch_begin(struct xm_watch *w, struct xm_watched *c, struct xm_exchange *x)
{
    pthread_mutex_lock(&w->lock);
    c->x = x;
    xm_exchange_ref(x);
    pthread_mutex_unlock(&w->lock);
}

void
xm_watch_end(struct xm_watch *w, struct xm_watched *c)
{
    pthread_mutex_lock(&w->lock);
    struct xm_exchange *x = c->x;
    c->x = NULL;
    pthread_mutex_unlock(&w->lock);
    xm_exchange_unref(x);
    xm_watch_expect(w, c);
}

bool
xm_watch_is_gone(struct xm_watch *w, const struct xm_watched *c)
{
    pthread_mutex_lock(&w->lock);
    const bool is_gone = c->is_gone;
    pthread_mutex_unlock(&w->lock);
    return is_gone;
}

void
xm_watch_stop_all(struct xm_watch *w)
{
    uint64_t after = UINT64_MAX; /* newer connections come first in the list */
    for (bool found = true; found;) {
        struct xm_exchange *x = NULL;
        pthread_mutex_lock(&w->lock);
        struct xm_watched *c = w->all;
        while (c && (c->id >= after || !c->x))
            c = c->next;
        found = c != NULL;
        if (c) {
            after = c->id;
            x = c->x;
            xm_exchange_ref(x);
        }
        pthread_mutex_unlock(&w->lock);
        if (x)
            xm_exchange_stop(x);
        xm_exchange_unref(x);
    }
}
