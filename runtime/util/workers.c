/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers take items one at a time under a lock: an item takes 100 us or more, so the cost of the
 * lock does not matter. Calls of xm_workers_run are numbered; a sleeping thread recognises a new
 * call by its number.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "runtime/util/workers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/memory.h"

struct worker {
    struct xm_workers *all;
    size_t number;
    pthread_t thread;
};

struct xm_workers {
    pthread_mutex_t lock; /* protects all members below */
    pthread_cond_t called, done;
    uint64_t call;    /* counts calls         */
    size_t next, n;   /* items of this call   */
    size_t n_working; /* workers in this call */
    void (*work)(size_t item, size_t worker, void *ctx);
    void *ctx;
    bool is_over;
    size_t n_threads; /* threads, without the caller's */
    struct worker threads[XM_MOST_WORKERS];
};

size_t
xm_workers_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n < XM_MOST_WORKERS ? (size_t)n : XM_MOST_WORKERS;
}

/* Runs items until none is left; the caller holds the lock before and after. */
static void
work_on(struct xm_workers *w, size_t number)
{
    w->n_working++;
    while (w->next < w->n) {
        const size_t item = w->next++;
        pthread_mutex_unlock(&w->lock);
        w->work(item, number, w->ctx);
        pthread_mutex_lock(&w->lock);
    }
    if (--w->n_working == 0)
        pthread_cond_signal(&w->done);
}

static void *
thread_main(void *arg)
{
    const struct worker *self = arg;
    struct xm_workers *w = self->all;
    uint64_t seen = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->is_over) {
        if (w->call == seen) {
            pthread_cond_wait(&w->called, &w->lock);
            continue;
        }
        seen = w->call;
        work_on(w, self->number);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Starts a thread with all signals blocked, so that they go to the program's own threads. */
static bool
start(struct worker *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool ok = pthread_create(&self->thread, NULL, thread_main, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

static bool
init_lock(struct xm_workers *w)
{
    if (pthread_mutex_init(&w->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&w->called, NULL) == 0) {
        if (pthread_cond_init(&w->done, NULL) == 0)
            return true;
        pthread_cond_destroy(&w->called);
    }
    pthread_mutex_destroy(&w->lock);
    return false;
}

struct xm_workers *
xm_workers_create(size_t n)
{
    struct xm_workers *w = xm_calloc(1, sizeof(*w));
    if (w && !init_lock(w)) {
        xm_free(w);
        w = NULL;
    }
    if (!w)
        return NULL;
    for (size_t i = 1; i < n && i < XM_MOST_WORKERS; i++) {
        struct worker *self = &w->threads[w->n_threads];
        *self = (struct worker){.all = w, .number = i};
        if (!start(self))
            break;
        w->n_threads++;
    }
    return w;
}

size_t
xm_workers_count(const struct xm_workers *w)
{
    return w->n_threads + 1;
}

void
xm_workers_free(struct xm_workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_over = true;
    pthread_cond_broadcast(&w->called);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i].thread, NULL);
    pthread_cond_destroy(&w->called);
    pthread_cond_destroy(&w->done);
    pthread_mutex_destroy(&w->lock);
    xm_free(w);
}

void
xm_workers_run(struct xm_workers *w, size_t n,
               void (*work)(size_t item, size_t worker, void *ctx), void *ctx)
{
    pthread_mutex_lock(&w->lock);
    w->work = work;
    w->ctx = ctx;
    w->next = 0;
    w->n = n;
    if (n > 1 && w->n_threads > 0) {
        w->call++;
        pthread_cond_broadcast(&w->called);
    }
    work_on(w, 0);
    while (w->n_working > 0)
        pthread_cond_wait(&w->done, &w->lock);
    pthread_mutex_unlock(&w->lock);
}
