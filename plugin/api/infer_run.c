/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a request: synchronously, or in a thread that the first asynchronous run creates.
 *
 *     idle --start_async--> busy --end of run--> idle, in_callback --its end--> idle
 *
 * Other threads do not access a busy request. During the callback the request is idle again, so
 * that the callback may read outputs and start the next run; waits also wait for the end of the
 * callback. The callback may free the request: then the thread owns the runner, and ends.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "plugin/api/api.h"

struct xm_api_runner {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* signals a change of any member below */
    pthread_t thread;
    bool has_thread, stop;
    bool is_orphan; /* freed in its own callback: the thread frees this struct */
    bool busy;      /* a run is in progress */
    bool asked;     /* the thread is to begin a run */
    bool in_callback;
    bool has_begun;                /* at least one run has begun */
    struct xm_error err;           /* the error of the last run, which waits return */
    const ov_callback_t *callback; /* owned by the caller; NULL: none */
};

/* ---- life -------------------------------------------------------------------------- */

enum xm_status
xm_api_runner_create(struct xm_api_runner **out, struct xm_error *err)
{
    pthread_condattr_t attr;
    struct xm_api_runner *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_no_memory(err, "a request");
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
    *out = r;
    return XM_OK;
}

static void
free_runner(struct xm_api_runner *r)
{
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    xm_free(r);
}

void
xm_api_runner_destroy(struct xm_api_runner *r)
{
    if (!r)
        return;
    if (!r->has_thread) {
        free_runner(r);
        return;
    }
    bool is_own_thread = pthread_equal(pthread_self(), r->thread);
    pthread_t thread = r->thread;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    if (is_own_thread) {
        r->is_orphan = true;
        /* a run that the callback started is dropped with its request */
        r->asked = false;
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (is_own_thread) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    free_runner(r);
}

/* ---- the lock ---------------------------------------------------------------------- */

bool
xm_api_request_lock(const ov_infer_request_t *r)
{
    pthread_mutex_lock(&r->runner->lock);
    if (!r->runner->busy)
        return true;
    pthread_mutex_unlock(&r->runner->lock);
    xm_api_fail(REQUEST_BUSY, "Infer Request is busy");
    return false;
}

void
xm_api_request_unlock(const ov_infer_request_t *r)
{
    pthread_mutex_unlock(&r->runner->lock);
}

/* ---- one run ----------------------------------------------------------------------- */

/* Marks the request busy. The caller holds the lock. From now on cancels apply to this run. */
static void
become_busy(ov_infer_request_t *r)
{
    r->runner->busy = true;
    r->infer->ops->resume(r->infer);
}

/* Runs the model. The request is busy, so that only this thread accesses it. */
static enum xm_status
run(ov_infer_request_t *r, struct xm_error *err)
{
    const struct xm_profile_ops *profile = r->infer->ops->profile;
    if (profile)
        profile->reset(r->infer); /* profiling data are those of the last run */
    XM_TRY(xm_api_slots_bind(r, err));
    XM_TRY(r->infer->ops->infer(r->infer, err));
    return xm_api_slots_collect(r, err);
}

ov_status_e
ov_infer_request_infer(ov_infer_request_t *infer_request)
{
    struct xm_error err = {0};
    if (!xm_api_is(infer_request, XM_API_REQUEST))
        return xm_api_refuse(__func__);
    if (!xm_api_request_lock(infer_request))
        return REQUEST_BUSY;
    struct xm_api_runner *runner = infer_request->runner;
    runner->has_begun = true;
    become_busy(infer_request);
    xm_api_request_unlock(infer_request);
    run(infer_request, &err);
    pthread_mutex_lock(&runner->lock);
    runner->err = err;
    runner->busy = false;
    pthread_cond_broadcast(&runner->changed);
    pthread_mutex_unlock(&runner->lock);
    return xm_api_error(&err);
}

/* ---- the thread -------------------------------------------------------------------- */

/* Performs one asynchronous run and its callback, which may free `r`. Called and returns with the
 * lock held. */
static void
serve(ov_infer_request_t *r)
{
    struct xm_api_runner *runner = r->runner;
    struct xm_error err = {0};
    runner->asked = false;
    pthread_mutex_unlock(&runner->lock);
    run(r, &err);
    pthread_mutex_lock(&runner->lock);
    const ov_callback_t *callback = runner->callback;
    runner->err = err;
    runner->busy = false;
    runner->in_callback = callback != NULL;
    if (callback) {
        pthread_mutex_unlock(&runner->lock);
        callback->callback_func(callback->args);
        pthread_mutex_lock(&runner->lock);
        runner->in_callback = false;
    }
    pthread_cond_broadcast(&runner->changed);
}

static void *
thread_main(void *arg)
{
    ov_infer_request_t *r = arg;
    struct xm_api_runner *runner = r->runner;
    pthread_mutex_lock(&runner->lock);
    while (runner->asked || !runner->stop) {
        if (runner->asked)
            serve(r);
        else
            pthread_cond_wait(&runner->changed, &runner->lock);
    }
    bool is_orphan = runner->is_orphan;
    pthread_mutex_unlock(&runner->lock);
    if (is_orphan)
        free_runner(runner);
    return NULL;
}

ov_status_e
ov_infer_request_start_async(ov_infer_request_t *infer_request)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST))
        return xm_api_refuse(__func__);
    if (!xm_api_request_lock(infer_request))
        return REQUEST_BUSY;
    struct xm_api_runner *runner = infer_request->runner;
    int code = 0;
    if (!runner->has_thread)
        code = pthread_create(&runner->thread, NULL, thread_main, infer_request);
    if (code == 0) {
        runner->has_thread = runner->has_begun = true;
        runner->asked = true;
        become_busy(infer_request);
        pthread_cond_broadcast(&runner->changed);
    }
    xm_api_request_unlock(infer_request);
    return code == 0 ? OK
                     : xm_api_fail(GENERAL_ERROR,
                                   "a thread could not be started (error %d)", code);
}

/* ---- waiting and cancelling -------------------------------------------------------- */

/* Whether a wait must wait. The callback's own thread never waits, because it would wait for
 * itself. */
static bool
is_running(const struct xm_api_runner *r)
{
    bool is_own_thread = r->has_thread && pthread_equal(pthread_self(), r->thread);
    return !is_own_thread && (r->busy || r->in_callback);
}

ov_status_e
ov_infer_request_wait(ov_infer_request_t *infer_request)
{
    struct xm_error err;
    if (!xm_api_is(infer_request, XM_API_REQUEST))
        return xm_api_refuse(__func__);
    struct xm_api_runner *runner = infer_request->runner;
    pthread_mutex_lock(&runner->lock);
    while (is_running(runner))
        pthread_cond_wait(&runner->changed, &runner->lock);
    err = runner->err;
    pthread_mutex_unlock(&runner->lock);
    return xm_api_error(&err);
}

static struct timespec
deadline_after(int64_t ms)
{
    enum { MAX_SECONDS = 1000000000 };
    struct timespec t;
    int64_t seconds = ms / 1000 < MAX_SECONDS ? ms / 1000 : MAX_SECONDS;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)seconds;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

ov_status_e
ov_infer_request_wait_for(ov_infer_request_t *infer_request, const int64_t timeout)
{
    struct xm_error err;
    if (!xm_api_is(infer_request, XM_API_REQUEST))
        return xm_api_refuse(__func__);
    if (timeout < 0)
        return xm_api_fail(GENERAL_ERROR, "the timeout is %lld ms, expected 0 or more",
                           (long long)timeout);
    struct xm_api_runner *runner = infer_request->runner;
    struct timespec deadline = deadline_after(timeout);
    pthread_mutex_lock(&runner->lock);
    int code = 0;
    while (is_running(runner) && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&runner->changed, &runner->lock, &deadline);
    bool is_ready = runner->has_begun && !is_running(runner);
    err = runner->err;
    pthread_mutex_unlock(&runner->lock);
    return is_ready ? xm_api_error(&err) : RESULT_NOT_READY;
}

ov_status_e
ov_infer_request_cancel(ov_infer_request_t *infer_request)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST))
        return xm_api_refuse(__func__);
    struct xm_api_runner *runner = infer_request->runner;
    pthread_mutex_lock(&runner->lock);
    if (runner->busy)
        infer_request->infer->ops->cancel(infer_request->infer);
    pthread_mutex_unlock(&runner->lock);
    return OK;
}

ov_status_e
ov_infer_request_set_callback(ov_infer_request_t *infer_request,
                              const ov_callback_t *callback)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !callback ||
        !callback->callback_func)
        return xm_api_refuse(__func__);
    if (!xm_api_request_lock(infer_request))
        return REQUEST_BUSY;
    infer_request->runner->callback = callback;
    xm_api_request_unlock(infer_request);
    return OK;
}
