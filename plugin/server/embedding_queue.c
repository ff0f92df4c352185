/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/embedding_queue.h"

#include <pthread.h>
#include <signal.h>

#include "runtime/util/number.h"

struct xm_embedding_queue {
    struct xm_embedding_source source;
    size_t most_waiting;
    /* NULL: not made yet; used by the thread once it has begun */
    struct xm_embedder *embedder;
    struct xm_error outcome; /* of making `embedder` */
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock; /* guards the following members */
    pthread_cond_t woken;
    bool stops;
    struct xm_embedding_job *first, *last;
    /* Only compared, never dereferenced, because its owner may free it after its answer. NULL: no
     * job runs. */
    const struct xm_embedding_job *running;
    size_t n_waiting;
};

/* ---- the program ----------------------------------------------------------------------------- */

static void
open_embedder(struct xm_embedding_queue *q)
{
    struct xm_embedder *made = NULL;
    struct xm_error why = {0};
    if (q->embedder || (q->outcome.status != XM_OK && q->outcome.status != XM_NO_MEMORY))
        return;
    q->source.open(q->source.ctx, &made, &why);
    q->outcome = why;
    pthread_mutex_lock(&q->lock); /* xm_embedding_queue_cancel reads `embedder` */
    q->embedder = made;
    pthread_mutex_unlock(&q->lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Waits for a job and returns it; NULL: the queue was stopped and has no jobs left. */
static struct xm_embedding_job *
take(struct xm_embedding_queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->stops)
        pthread_cond_wait(&q->woken, &q->lock);
    struct xm_embedding_job *job = q->first;
    if (job) {
        q->first = job->next;
        q->last = q->first ? q->last : NULL;
        q->n_waiting--;
    }
    q->running = job;
    pthread_mutex_unlock(&q->lock);
    return job;
}

/* Whether the job has not been cancelled. A cancel before this call is seen here, a later one makes
 * the run return XM_CANCELLED. */
static bool
is_wanted(struct xm_embedding_queue *q, const struct xm_embedding_job *job)
{
    pthread_mutex_lock(&q->lock);
    const bool is = !job->is_cancelled && !q->stops;
    if (is && q->embedder)
        xm_embedder_resume(q->embedder);
    pthread_mutex_unlock(&q->lock);
    return is;
}

/* Clears `running`: later cancels of this job no longer cancel the program's run. */
static void
forget(struct xm_embedding_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->running = NULL;
    pthread_mutex_unlock(&q->lock);
}

static void
run(struct xm_embedding_queue *q, struct xm_embedding_job *job)
{
    static const struct xm_error cancelled = {XM_CANCELLED, "the server is stopping"};
    if (is_wanted(q, job))
        open_embedder(q);
    if (is_wanted(q, job)) /* making the program may have taken seconds */
        job->run(q->embedder, &q->outcome, job->ctx);
    else
        job->run(NULL, &cancelled, job->ctx);
}

static void *
run_on(void *arg)
{
    struct xm_embedding_queue *q = arg;
    for (struct xm_embedding_job *job; (job = take(q));) {
        run(q, job);
        forget(q);
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Starts the thread with signals blocked, because the main thread handles them. */
static enum xm_status
start(struct xm_embedding_queue *q, struct xm_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    q->is_started = pthread_create(&q->thread, NULL, run_on, q) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return q->is_started ? XM_OK : xm_no_memory(err, "a thread for embeddings");
}

enum xm_status
xm_embedding_queue_create(const struct xm_embedding_source *source, size_t most_waiting,
                          struct xm_embedding_queue **out, struct xm_error *err)
{
    struct xm_embedding_queue *q = xm_calloc(1, sizeof(*q));
    *out = NULL;
    if (!q)
        return xm_no_memory(err, "a queue for embeddings");
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->woken, NULL);
    q->source = *source;
    q->most_waiting = most_waiting;
    if (source->at_start)
        open_embedder(q);
    enum xm_status s = q->outcome.status;
    s = s == XM_OK ? start(q, err) : xm_fail(err, s, "%s", q->outcome.text);
    if (s == XM_OK)
        *out = q;
    else
        xm_embedding_queue_destroy(q);
    return s;
}

void
xm_embedding_queue_stop(struct xm_embedding_queue *q)
{
    if (!q || !q->is_started)
        return;
    pthread_mutex_lock(&q->lock);
    q->stops = true; /* also cancels waiting jobs */
    if (q->running && q->embedder)
        xm_embedder_cancel(q->embedder);
    pthread_cond_signal(&q->woken);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    q->is_started = false;
}

void
xm_embedding_queue_destroy(struct xm_embedding_queue *q)
{
    if (!q)
        return;
    xm_embedding_queue_stop(q);
    xm_embedder_destroy(q->embedder);
    pthread_cond_destroy(&q->woken);
    pthread_mutex_destroy(&q->lock);
    xm_free(q);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

enum xm_status
xm_embedding_queue_submit(struct xm_embedding_queue *q, struct xm_embedding_job *job,
                          struct xm_error *err)
{
    enum xm_status s = XM_OK;
    pthread_mutex_lock(&q->lock);
    if (q->stops)
        s = xm_fail(err, XM_CANCELLED, "the server is stopping");
    else if (q->most_waiting && q->n_waiting >= q->most_waiting)
        s = xm_fail(err, XM_BUSY,
                    "too many requests: %zu of the requests for embeddings already wait",
                    q->n_waiting);
    if (s == XM_OK) {
        job->next = NULL;
        job->is_cancelled = false;
        if (q->last)
            q->last->next = job;
        else
            q->first = job;
        q->last = job;
        q->n_waiting++;
        pthread_cond_signal(&q->woken);
    }
    pthread_mutex_unlock(&q->lock);
    return s;
}

void
xm_embedding_queue_cancel(struct xm_embedding_queue *q, struct xm_embedding_job *job)
{
    pthread_mutex_lock(&q->lock);
    job->is_cancelled = true;
    if (q->running == job && q->embedder)
        xm_embedder_cancel(q->embedder);
    pthread_mutex_unlock(&q->lock);
}

size_t
xm_embedding_queue_n_waiting(struct xm_embedding_queue *q)
{
    if (!q)
        return 0;
    pthread_mutex_lock(&q->lock);
    const size_t n = q->n_waiting;
    pthread_mutex_unlock(&q->lock);
    return n;
}
