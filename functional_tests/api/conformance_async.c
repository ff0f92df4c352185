/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: asynchronous runs, callbacks, cancelling, several threads.
 */
#include "functional_tests/api/conformance.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 120000 };

/* Counters of callbacks, which run in other threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int calls;

static void OPENVINO_C_API_CALLBACK
on_end(void *args)
{
    pthread_mutex_lock(&lock);
    calls += *(const int *)args;
    pthread_mutex_unlock(&lock);
}

static int
calls_so_far(void)
{
    pthread_mutex_lock(&lock);
    const int n = calls;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- idle requests ------------------------------------------------------------------ */

static void
check_idle(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_compiled_model_t *compiled = compile_model(c, m);
    ov_infer_request_t *r = make_request(compiled);
    int one = 1;
    const ov_callback_t callback = {on_end, &one};
    GOOD(ov_infer_request_wait(r));
    STATUS(ov_infer_request_wait_for(r, 0), RESULT_NOT_READY);
    GOOD(ov_infer_request_cancel(r));
    STATUS(ov_infer_request_set_callback(r, NULL), INVALID_C_PARAM);
    GOOD(ov_infer_request_set_callback(r, &callback));
    const int before = calls_so_far();
    GOOD(ov_infer_request_infer(r));
    CHECK(calls_so_far() == before); /* callbacks are for asynchronous runs only */
    GOOD(ov_infer_request_wait_for(r, 0));
    GOOD(ov_infer_request_start_async(r));
    GOOD(ov_infer_request_wait(r));
    CHECK(calls_so_far() == before + 1);
    GOOD(ov_infer_request_start_async(r));
    GOOD(ov_infer_request_wait_for(r, PATIENCE_MS));
    GOOD(ov_infer_request_wait(r));
    CHECK(calls_so_far() == before + 2);
    ov_infer_request_free(r);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

/* Inputs whose shapes do not fit: the run fails, and each wait until the next run returns the
 * failure. */
static void
check_failed_run(const struct conformance *c)
{
    float data[6] = {0.0f};
    ov_model_t *m = make_adder(c, -1);
    ov_compiled_model_t *compiled = compile_model(c, m);
    ov_infer_request_t *r = make_request(compiled);
    ov_tensor_t *two = wrap_floats(data, 2, 2), *three = wrap_floats(data, 3, 2);
    GOOD(ov_infer_request_set_tensor(r, "a", two));
    GOOD(ov_infer_request_set_tensor(r, "b", three));
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            STATUS(ov_infer_request_infer(r), GENERAL_ERROR);
        else
            GOOD(ov_infer_request_start_async(r));
        STATUS(ov_infer_request_wait(r), GENERAL_ERROR);
        STATUS(ov_infer_request_wait_for(r, 0), GENERAL_ERROR);
        STATUS(ov_infer_request_wait(r), GENERAL_ERROR);
    }
    GOOD(ov_infer_request_set_tensor(r, "a", three));
    GOOD(ov_infer_request_infer(r));
    GOOD(ov_infer_request_wait_for(r, 0));
    GOOD(ov_infer_request_wait(r));
    ov_tensor_free(two);
    ov_tensor_free(three);
    ov_infer_request_free(r);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

/* ---- a long run --------------------------------------------------------------------- */

/* During a run every function but wait and cancel reports that the request is busy. */
static void
check_busy(ov_infer_request_t *r, const ov_tensor_t *x)
{
    int one = 1;
    const ov_callback_t callback = {on_end, &one};
    ov_tensor_t *t = NULL;
    GOOD(ov_infer_request_start_async(r));
    STATUS(ov_infer_request_start_async(r), REQUEST_BUSY);
    STATUS(ov_infer_request_infer(r), REQUEST_BUSY);
    STATUS(ov_infer_request_set_input_tensor(r, x), REQUEST_BUSY);
    STATUS(ov_infer_request_get_output_tensor(r, &t), REQUEST_BUSY);
    STATUS(ov_infer_request_set_callback(r, &callback), REQUEST_BUSY);
    STATUS(ov_infer_request_wait_for(r, 0), RESULT_NOT_READY);
    CHECK(t == NULL);
    GOOD(ov_infer_request_wait(r));
    GOOD(ov_infer_request_get_output_tensor(r, &t));
    ov_tensor_free(t);
}

/* A cancel may come too late. Afterwards the request works as before. */
static void
check_cancel(ov_infer_request_t *r, const float *x)
{
    ov_tensor_t *t = NULL;
    void *y = NULL;
    GOOD(ov_infer_request_start_async(r));
    GOOD(ov_infer_request_cancel(r));
    const ov_status_e s = ov_infer_request_wait(r);
    CHECK(s == INFER_CANCELLED || s == OK);
    GOOD(ov_infer_request_infer(r));
    GOOD(ov_infer_request_get_output_tensor(r, &t));
    if (GOOD(ov_tensor_data(t, &y)))
        CHECK(are_near(y, x, HEAVY_SIZE));
    ov_tensor_free(t);
}

static void
check_long_runs(const struct conformance *c)
{
    const size_t n = (size_t)HEAVY_ROWS * HEAVY_SIZE;
    ov_model_t *m = make_heavy(c);
    ov_compiled_model_t *compiled = compile_model(c, m);
    ov_infer_request_t *r = make_request(compiled);
    float *x = calloc(n, sizeof(*x));
    if (!x)
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(i % 17);
    ov_tensor_t *in = wrap_floats(x, HEAVY_ROWS, HEAVY_SIZE);
    GOOD(ov_infer_request_set_input_tensor(r, in));
    check_busy(r, in);
    check_cancel(r, x);
    GOOD(ov_infer_request_start_async(r));
    ov_infer_request_free(r); /* cancels the run */
    ov_tensor_free(in);
    free(x);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

/* ---- threads ------------------------------------------------------------------------- */

enum { THREADS = 4, RUNS = 25 };

struct worker {
    const ov_compiled_model_t *compiled;
    pthread_t thread;
    float first; /* first element of the thread's input */
    int good;
};

/* Runs a request of its own. It does not use CHECK, which counts in one thread only. */
static void *
work(void *arg)
{
    struct worker *w = arg;
    float data[2 * MLP_IN] = {w->first}, prob[MLP_OUT];
    int64_t dims[] = {2, MLP_IN};
    const ov_shape_t shape = {2, dims};
    ov_infer_request_t *r = NULL;
    ov_tensor_t *in = NULL;
    mlp_expected(data, prob);
    if (ov_compiled_model_create_infer_request(w->compiled, &r) != OK ||
        ov_tensor_create_from_host_ptr(F32, shape, data, &in) != OK ||
        ov_infer_request_set_input_tensor(r, in) != OK)
        return NULL;
    for (int i = 0; i < RUNS; i++) {
        ov_tensor_t *out = NULL;
        void *found = NULL;
        w->good += ov_infer_request_start_async(r) == OK &&
                   ov_infer_request_wait(r) == OK &&
                   ov_infer_request_get_output_tensor(r, &out) == OK &&
                   ov_tensor_data(out, &found) == OK && are_near(found, prob, MLP_OUT);
        ov_tensor_free(out);
    }
    ov_tensor_free(in);
    ov_infer_request_free(r);
    return NULL;
}

static void
check_threads(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_compiled_model_t *compiled = compile_model(c, m);
    struct worker workers[THREADS];
    mlp_weight();
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.compiled = compiled, .first = (float)i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            exit(EXIT_FAILURE);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK(workers[i].good == RUNS);
    }
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

void
check_async(const struct conformance *c)
{
    check_idle(c);
    check_failed_run(c);
    check_long_runs(c);
    check_threads(c);
}
