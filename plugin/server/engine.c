/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/engine.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "plugin/pipeline/token_runner.h"
#include "plugin/server/refusal.h"

struct xm_served_thread {
    /* NULL, without a thread: the model generates no texts */
    struct xm_scheduler *scheduler;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock; /* guards the following members */
    pthread_cond_t woken;
    bool has_work, stops;
    size_t n_waiting, n_running; /* after the last step */
    struct xm_error why;         /* the error of the last step */
};

/* ---- the thread that runs the steps ---------------------------------------------------------- */

/* Waits until there is work. Returns false: the thread must end. */
static bool
wait_for_work(struct xm_served_thread *t, size_t n_jobs)
{
    pthread_mutex_lock(&t->lock);
    while (!t->stops && !t->has_work && n_jobs == 0)
        pthread_cond_wait(&t->woken, &t->lock);
    t->has_work = false;
    const bool stops = t->stops;
    pthread_mutex_unlock(&t->lock);
    return !stops;
}

static void
note_step(struct xm_served_thread *t, const struct xm_scheduler_progress *did,
          const struct xm_error *why)
{
    pthread_mutex_lock(&t->lock);
    t->n_waiting = did->n_waiting;
    t->n_running = did->n_jobs - did->n_waiting;
    t->why = *why;
    pthread_mutex_unlock(&t->lock);
}

static void *
step_on(void *arg)
{
    struct xm_served_thread *t = arg;
    struct xm_scheduler_progress did = {.n_jobs = 0};
    while (wait_for_work(t, did.n_jobs)) {
        struct xm_error why = {0};
        const enum xm_status s = xm_scheduler_step(t->scheduler, &did, &why);
        if (s != XM_OK) {
            xm_scheduler_end_all(t->scheduler, s == XM_CANCELLED ? NULL : &why);
            did = (struct xm_scheduler_progress){.n_jobs = 0};
        }
        note_step(t, &did, &why);
    }
    xm_scheduler_end_all(t->scheduler, NULL);
    return NULL;
}

/* Starts the thread with signals blocked, because the main thread handles them. */
static enum xm_status
start(struct xm_served_thread *t, struct xm_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    t->is_started = pthread_create(&t->thread, NULL, step_on, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t->is_started ? XM_OK : xm_no_memory(err, "a model's thread");
}

static void
wake(struct xm_served_thread *t, bool stops)
{
    pthread_mutex_lock(&t->lock);
    t->has_work = true;
    t->stops |= stops;
    pthread_cond_signal(&t->woken);
    pthread_mutex_unlock(&t->lock);
}

/* ---- life ----------------------------------------------------------------------------------- */

static enum xm_status
make_thread(struct xm_served *m, struct xm_error *err)
{
    struct xm_served_thread *t = xm_calloc(1, sizeof(*t));
    if (!t)
        return xm_no_memory(err, "a model's thread");
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->woken, NULL);
    m->thread = t;
    if (m->options.is_for_embeddings)
        return XM_OK;
    XM_TRY(xm_scheduler_create(m->compiled, m->package, &t->scheduler, err));
    xm_scheduler_set_slots(t->scheduler, m->options.slots);
    xm_scheduler_set_prefix_store(t->scheduler, m->options.prefixes);
    return start(t, err);
}

static void
stop(struct xm_served_thread *t)
{
    if (!t->is_started)
        return;
    wake(t, true);
    pthread_join(t->thread, NULL);
    t->is_started = false;
}

static void
end_thread(struct xm_served_thread *t)
{
    if (!t)
        return;
    stop(t);
    xm_scheduler_destroy(t->scheduler);
    pthread_cond_destroy(&t->woken);
    pthread_mutex_destroy(&t->lock);
    xm_free(t);
}

enum xm_status
xm_served_create(struct xm_compiled *compiled, struct xm_package *package,
                 const struct xm_served_options *options, struct xm_served **out,
                 struct xm_error *err)
{
    struct xm_served *m = xm_calloc(1, sizeof(*m));
    *out = NULL;
    if (!m || xm_metrics_init(&m->metrics, err) != XM_OK) {
        xm_free(m);
        return xm_no_memory(err, "a model");
    }
    m->compiled = compiled;
    m->package = package;
    m->options = *options;
    m->created = (int64_t)time(NULL);
    m->name = xm_strdup(options->name);
    m->options.name = m->name;
    m->vocabulary = options->vocabulary         ? options->vocabulary
                    : compiled->ports.n_outputs ? xm_compiled_vocabulary(compiled)
                                                : UINT64_MAX;
    enum xm_status s =
        m->name ? make_thread(m, err) : xm_no_memory(err, "a model's name");
    if (s == XM_OK && options->embeddings.open)
        s = xm_embedding_queue_create(&options->embeddings, options->most_waiting,
                                      &m->embeddings, err);
    if (s == XM_OK)
        *out = m;
    else
        xm_served_destroy(m);
    return s;
}

void
xm_served_stop(struct xm_served *m)
{
    xm_embedding_queue_stop(m->embeddings);
    stop(m->thread);
    if (m->thread->scheduler)
        /* jobs submitted since the thread ended */
        xm_scheduler_end_all(m->thread->scheduler, NULL);
}

void
xm_served_destroy(struct xm_served *m)
{
    if (!m)
        return;
    xm_embedding_queue_destroy(m->embeddings);
    end_thread(m->thread);
    xm_metrics_free(&m->metrics);
    xm_free(m->name);
    xm_free(m);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

enum xm_status
xm_served_submit(struct xm_served *m, const struct xm_job *job, uint64_t *id,
                 struct xm_error *err)
{
    struct xm_served_thread *t = m->thread;
    if (!t->scheduler)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the model computes embeddings only, no texts");
    /* so that no job is submitted after the thread's last look at the jobs */
    pthread_mutex_lock(&t->lock);
    const enum xm_status s = t->stops
                                 ? xm_fail(err, XM_CANCELLED, "the server is stopping")
                                 : xm_scheduler_submit(t->scheduler, job, id, err);
    t->has_work |= s == XM_OK;
    pthread_cond_signal(&t->woken);
    pthread_mutex_unlock(&t->lock);
    return s;
}

void
xm_served_cancel(struct xm_served *m, uint64_t id)
{
    xm_scheduler_cancel(m->thread->scheduler, id);
    wake(m->thread, false);
}

bool
xm_served_takes_messages(const struct xm_served *m, struct xm_refusal *r)
{
    const struct xm_package *p = m->package;
    return (p && p->tokenizer && p->chat_template) ||
           xm_refuse(r, 400, "model", "unsupported_parameter",
                     "the model has no chat template, so it cannot answer messages");
}

void
xm_served_look(const struct xm_served *m, struct xm_metrics_now *out)
{
    struct xm_served_thread *t = m->thread;
    struct xm_compiled_stats stats = {0};
    if (m->compiled->ops->stats)
        m->compiled->ops->stats(m->compiled, &stats);
    const uint64_t embeddings_waiting = xm_embedding_queue_n_waiting(m->embeddings);
    pthread_mutex_lock(&t->lock);
    *out = (struct xm_metrics_now){.model = m->name,
                                   .waiting = t->n_waiting,
                                   .running = t->n_running,
                                   .slots = m->options.slots,
                                   .embeddings_waiting = embeddings_waiting,
                                   .pages = stats.kv_pages,
                                   .used_pages = stats.kv_pages_used,
                                   .cached_pages = stats.kv_pages_cached};
    pthread_mutex_unlock(&t->lock);
}

bool
xm_served_is_well(const struct xm_served *m, struct xm_error *why)
{
    struct xm_served_thread *t = m->thread;
    pthread_mutex_lock(&t->lock);
    *why = t->why;
    pthread_mutex_unlock(&t->lock);
    return why->status == XM_OK;
}
