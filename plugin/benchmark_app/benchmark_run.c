/* SPDX-License-Identifier: Apache-2.0
 *
 * In asynchronous mode the main thread starts inferences and collects the ended ones; the callback
 * of a request, in the request's own thread, reports that it has ended:
 *
 *     idle --main thread fills and starts it--> running --callback--> ended --main thread-->
 * idle
 */
#include "plugin/benchmark_app/benchmark_run.h"

#include <pthread.h>
#include <time.h>

#include "plugin/benchmark_app/benchmark_cancel.h"
#include "plugin/program_util/interrupt.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/clock.h"
#include "xemoe/xemoe.h"

/* The ended requests, in the order of their ends. */
struct ended {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct xm_benchmark_request *first, *last;
};

struct xm_benchmark_request {
    ov_infer_request_t *handle; /* owned */
    /* owned, one for each input; in a context one for each input and set, NULL until it is made */
    ov_tensor_t **tensors;
    size_t n_tensors, set; /* set: the current set of inputs */
    double started_s, ended_s;
    ov_callback_t callback;
    struct ended *ended;
    struct xm_benchmark_request *next;
};

/* ---- inputs ------------------------------------------------------------------------ */

static ov_shape_t
shape_of(const struct xm_benchmark_dims *d, int64_t dims[XM_BENCHMARK_RANK])
{
    for (uint32_t i = 0; i < d->rank; i++)
        dims[i] = d->min[i];
    return (ov_shape_t){d->rank, dims};
}

/* Returns a tensor with the set's shape: the context's tensor, which is kept, or the request's own,
 * which can have any shape. */
static ov_status_e
shape_tensor(const struct xm_benchmark_job *job, ov_element_type_e type, ov_shape_t shape,
             ov_tensor_t **t)
{
    if (!*t)
        return job->context
                   ? ov_remote_context_create_host_tensor(job->context, type, shape, t)
                   : ov_tensor_create(type, shape, t);
    return job->context ? OK : ov_tensor_set_shape(*t, shape);
}

/* Gives the shape and the bytes of a set to the request's own tensor. */
static enum xm_status
fill_input(const struct xm_benchmark_job *job, struct xm_benchmark_request *r, size_t set,
           size_t i, struct xm_error *err)
{
    const struct xm_benchmark_tensor *from = &xm_benchmark_set(job->inputs, set)[i];
    ov_tensor_t **t = &r->tensors[job->context ? set * job->inputs->ports->n + i : i];
    int64_t dims[XM_BENCHMARK_RANK];
    void *data = NULL;
    ov_status_e s = shape_tensor(job, job->inputs->ports->list[i].type,
                                 shape_of(&from->dims, dims), t);
    if (s == OK)
        s = ov_tensor_data(*t, &data);
    if (s == OK && from->bytes)
        memcpy(data, from->data, (size_t)from->bytes);
    if (s == OK)
        s = ov_infer_request_set_input_tensor_by_index(r->handle, i, *t);
    return xm_benchmark_api(s, NULL, err);
}

static enum xm_status
fill(const struct xm_benchmark_job *job, struct xm_benchmark_request *r, size_t set,
     struct xm_error *err)
{
    for (size_t i = 0; i < job->inputs->ports->n; i++)
        XM_TRY(fill_input(job, r, set, i, err));
    r->set = set;
    return XM_OK;
}

/* ---- requests ---------------------------------------------------------------------- */

/* Lets results with fixed shapes be written to the device's memory; the request keeps the
 * tensors. */
static enum xm_status
place_results(const struct xm_benchmark_job *job, struct xm_benchmark_request *r,
              struct xm_error *err)
{
    for (size_t i = 0; job->context && i < job->outputs->n; i++) {
        const struct xm_benchmark_port *p = &job->outputs->list[i];
        int64_t dims[XM_BENCHMARK_RANK];
        ov_tensor_t *t = NULL;
        if (!xm_benchmark_dims_are_fixed(&p->dims))
            continue;
        ov_status_e s = ov_remote_context_create_tensor(job->context, p->type,
                                                        shape_of(&p->dims, dims), 0, &t);
        if (s == OK)
            s = ov_infer_request_set_output_tensor_by_index(r->handle, i, t);
        ov_tensor_free(t);
        XM_TRY(xm_benchmark_api(s, "-use_device_mem", err));
    }
    return XM_OK;
}

static enum xm_status
make_request(const struct xm_benchmark_job *job, size_t set,
             struct xm_benchmark_request *r, struct xm_error *err)
{
    const size_t n = job->inputs->ports->n * (job->context ? job->inputs->n_sets : 1);
    *r = (struct xm_benchmark_request){0};
    r->tensors = xm_calloc(n + 1, sizeof(*r->tensors));
    if (!r->tensors)
        return xm_no_memory(err, "a request");
    r->n_tensors = n;
    XM_TRY(xm_benchmark_api(
        ov_compiled_model_create_infer_request(job->compiled, &r->handle), NULL, err));
    XM_TRY(place_results(job, r, err));
    return fill(job, r, set, err);
}

enum xm_status
xm_benchmark_run_prepare(const struct xm_benchmark_job *job, struct xm_benchmark_run *out,
                         struct xm_error *err)
{
    *out = (struct xm_benchmark_run){.first_ms = -1.0};
    out->requests = xm_calloc((size_t)job->requests, sizeof(*out->requests));
    if (!out->requests)
        return xm_no_memory(err, "requests");
    while (out->n_requests < job->requests) {
        const size_t i = out->n_requests++;
        XM_TRY(make_request(job, i % job->inputs->n_sets, &out->requests[i], err));
    }
    return XM_OK;
}

void
xm_benchmark_run_free(struct xm_benchmark_run *r)
{
    for (size_t i = 0; i < r->n_requests; i++) {
        struct xm_benchmark_request *q = &r->requests[i];
        ov_infer_request_free(q->handle);
        for (size_t k = 0; k < q->n_tensors; k++)
            ov_tensor_free(q->tensors[k]);
        xm_free(q->tensors);
    }
    xm_free(r->requests);
    xm_free(r->samples);
    *r = (struct xm_benchmark_run){0};
}

ov_infer_request_t *
xm_benchmark_run_request(const struct xm_benchmark_run *r, size_t i)
{
    return r->requests[i].handle;
}

/* ---- one inference ----------------------------------------------------------------- */

/* Prepares an inference: resets a language model, and, if fills_inside, sets the request's
 * inputs. */
static enum xm_status
make_ready(const struct xm_benchmark_job *job, struct xm_benchmark_request *r, size_t set,
           struct xm_error *err)
{
    if (job->inputs->is_language)
        XM_TRY(xm_benchmark_api(xm_request_reset_states(r->handle), NULL, err));
    return job->fills_inside ? fill(job, r, set, err) : XM_OK;
}

static enum xm_status
infer(struct xm_benchmark_request *r, struct xm_error *err)
{
    r->started_s = xm_now();
    const ov_status_e s = ov_infer_request_infer(r->handle);
    r->ended_s = xm_now();
    return xm_benchmark_api(s, NULL, err);
}

static enum xm_status
add_sample(const struct xm_benchmark_job *job, struct xm_benchmark_run *run,
           const struct xm_benchmark_request *r, struct xm_error *err)
{
    struct xm_benchmark_sample *grown =
        xm_grow(run->samples, &run->capacity, run->n + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "latencies");
    run->samples = grown;
    run->samples[run->n++] =
        (struct xm_benchmark_sample){1e3 * (r->ended_s - r->started_s), r->set};
    run->frames += xm_benchmark_inputs_batch(job->inputs, r->set);
    run->tokens += xm_benchmark_inputs_tokens(job->inputs, r->set);
    return XM_OK;
}

/* ---- limits ------------------------------------------------------------------------ */

struct course {
    double begin_s, shown_s;
    uint64_t begun; /* inferences */
};

static void
show_progress(const struct xm_benchmark_job *job, struct course *c, double now)
{
    enum { A_SECOND = 4 }; /* updates a second */
    if (!job->progress || now - c->shown_s < 1.0 / A_SECOND)
        return;
    const double of_count =
        job->niter == XM_BENCHMARK_UNSAID ? 1.0 : (double)c->begun / (double)job->niter;
    const double of_time = job->seconds == XM_BENCHMARK_UNSAID
                               ? 1.0
                               : (now - c->begin_s) / (double)job->seconds;
    const double done = of_count < of_time ? of_count : of_time;
    c->shown_s = now;
    xm_progress_show("measuring: %.0f%%, %llu inferences",
                     100.0 * (done < 1.0 ? done : 1.0), (unsigned long long)c->begun);
}

/* Waits until the next inference is due, or until Ctrl-C. */
static void
wait_until_due(const struct xm_benchmark_job *job, const struct course *c)
{
    const double most_s = 0.02;
    if (job->max_irate <= 0.0)
        return;
    const double due = c->begin_s + (double)c->begun / job->max_irate;
    for (double left; (left = due - xm_now()) > 0.0 && !xm_cli_interrupted();) {
        const double nap = left < most_s ? left : most_s;
        nanosleep(&(struct timespec){0, (long)(1e9 * nap)}, NULL);
    }
}

/* Whether to start another inference: a limit has not been reached, or a round is incomplete. */
static bool
goes_on(const struct xm_benchmark_job *job, struct course *c)
{
    const double now = xm_now();
    const bool has_few = job->niter != XM_BENCHMARK_UNSAID && c->begun < job->niter;
    const bool has_time =
        job->seconds != XM_BENCHMARK_UNSAID && now - c->begin_s < (double)job->seconds;
    show_progress(job, c, now);
    return !xm_cli_interrupted() && (has_few || has_time || c->begun % job->round);
}

/* ---- synchronous --------------------------------------------------------------------------- */

static enum xm_status
run_in_turn(const struct xm_benchmark_job *job, struct xm_benchmark_run *run,
            struct course *c, struct xm_error *err)
{
    struct xm_benchmark_request *r = &run->requests[0];
    while (goes_on(job, c)) {
        wait_until_due(job, c);
        XM_TRY(make_ready(job, r, (size_t)(c->begun % job->inputs->n_sets), err));
        c->begun++;
        XM_TRY(infer(r, err));
        XM_TRY(add_sample(job, run, r, err));
    }
    return XM_OK;
}

/* ---- asynchronous -------------------------------------------------------------------------- */

static void
put(struct ended *e, struct xm_benchmark_request *r)
{
    r->next = NULL;
    pthread_mutex_lock(&e->lock);
    *(e->first ? &e->last->next : &e->first) = r;
    e->last = r;
    pthread_cond_signal(&e->more);
    pthread_mutex_unlock(&e->lock);
}

static void OPENVINO_C_API_CALLBACK
on_end(void *request)
{
    struct xm_benchmark_request *r = request;
    r->ended_s = xm_now();
    put(r->ended, r);
}

static struct xm_benchmark_request *
take(struct ended *e)
{
    pthread_mutex_lock(&e->lock);
    while (!e->first)
        pthread_cond_wait(&e->more, &e->lock);
    struct xm_benchmark_request *r = e->first;
    e->first = r->next;
    pthread_mutex_unlock(&e->lock);
    return r;
}

static enum xm_status
begin(const struct xm_benchmark_job *job, struct xm_benchmark_request *r,
      struct course *c, struct xm_error *err)
{
    XM_TRY(make_ready(job, r, (size_t)(c->begun % job->inputs->n_sets), err));
    c->begun++;
    r->started_s = xm_now();
    return xm_benchmark_api(ov_infer_request_start_async(r->handle), NULL, err);
}

/* Collects the outcome of an inference that has ended. */
static enum xm_status
finish(const struct xm_benchmark_job *job, struct xm_benchmark_run *run,
       struct xm_benchmark_request *r, struct xm_error *err)
{
    XM_TRY(xm_benchmark_api(ov_infer_request_wait(r->handle), NULL, err));
    return add_sample(job, run, r, err);
}

/* Waits for all inferences that were begun, also after a failure. */
static enum xm_status
run_at_once(const struct xm_benchmark_job *job, struct xm_benchmark_run *run,
            struct ended *e, struct course *c, struct xm_error *err)
{
    enum xm_status s = XM_OK;
    /* requests from `next` on have not been started yet */
    size_t idle = run->n_requests, next = 0;
    struct xm_benchmark_request *r = NULL;
    while (s == XM_OK && goes_on(job, c)) {
        wait_until_due(job, c);
        if (next < run->n_requests) {
            r = &run->requests[next++];
        } else {
            r = take(e);
            idle++;
            s = finish(job, run, r, err);
        }
        if (s == XM_OK && goes_on(job, c)) {
            s = begin(job, r, c, err);
            idle -= s == XM_OK;
        }
    }
    while (idle < run->n_requests) {
        r = take(e);
        idle++;
        const enum xm_status last = finish(job, run, r, s == XM_OK ? err : NULL);
        s = s == XM_OK ? last : s;
    }
    return s;
}

static enum xm_status
run_async(const struct xm_benchmark_job *job, struct xm_benchmark_run *run,
          struct course *c, struct xm_error *err)
{
    struct ended e = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL};
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < run->n_requests && s == XM_OK; i++) {
        struct xm_benchmark_request *r = &run->requests[i];
        r->ended = &e;
        r->callback = (ov_callback_t){on_end, r};
        s = xm_benchmark_api(ov_infer_request_set_callback(r->handle, &r->callback), NULL,
                             err);
    }
    if (s == XM_OK)
        s = run_at_once(job, run, &e, c, err);
    pthread_cond_destroy(&e.more);
    pthread_mutex_destroy(&e.lock);
    return s;
}

/* ---- all --------------------------------------------------------------------------- */

/* Does some work, while Ctrl-C cancels its inferences. */
static enum xm_status
guarded(const struct xm_benchmark_job *job, struct xm_benchmark_run *run,
        enum xm_status (*work)(const struct xm_benchmark_job *job,
                               struct xm_benchmark_run *run, struct xm_error *err),
        struct xm_error *err)
{
    struct xm_benchmark_cancel *guard = NULL;
    XM_TRY(xm_benchmark_cancel_begin(run, &guard, err));
    enum xm_status s = work(job, run, err);
    xm_benchmark_cancel_end(guard);
    xm_progress_clear();
    if (xm_cli_interrupted() && s == XM_OK)
        s = xm_fail(err, XM_CANCELLED, "stopped by Ctrl-C");
    return s;
}

static enum xm_status
run_first(const struct xm_benchmark_job *job, struct xm_benchmark_run *run,
          struct xm_error *err)
{
    struct xm_benchmark_request *r = &run->requests[0];
    XM_TRY(make_ready(job, r, 0, err));
    if (job->progress) {
        xm_progress_show("first inference");
        xm_benchmark_show_builds();
    }
    const enum xm_status s = infer(r, err);
    xm_benchmark_hide_builds();
    run->first_ms = 1e3 * (r->ended_s - r->started_s);
    return s;
}

static enum xm_status
run_all(const struct xm_benchmark_job *job, struct xm_benchmark_run *run,
        struct xm_error *err)
{
    struct course c = {.begin_s = xm_now()};
    const enum xm_status s =
        job->is_async ? run_async(job, run, &c, err) : run_in_turn(job, run, &c, err);
    run->duration_ms = 1e3 * (xm_now() - c.begin_s);
    return s;
}

enum xm_status
xm_benchmark_run_first(const struct xm_benchmark_job *job, struct xm_benchmark_run *r,
                       struct xm_error *err)
{
    return guarded(job, r, run_first, err);
}

enum xm_status
xm_benchmark_run_all(const struct xm_benchmark_job *job, struct xm_benchmark_run *r,
                     struct xm_error *err)
{
    return guarded(job, r, run_all, err);
}
