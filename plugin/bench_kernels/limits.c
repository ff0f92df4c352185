/* SPDX-License-Identifier: Apache-2.0
 *
 * The rates that the machine reaches: streaming reads by the device and by host threads, and
 * multiply-adds without memory accesses.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "plugin/bench_kernels/bench.h"
#include "runtime/multiply_rate.h"
#include "runtime/read_rate.h"
#include "runtime/util/clock.h"

enum { READ_BYTES = 512 << 20, MAX_THREADS = 64 };

struct read_job {
    const char *bytes;
    size_t n;
    volatile uint64_t sum; /* keeps the compiler from removing the reads */
};

static void *
read_share(void *ctx)
{
    struct read_job *job = ctx;
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (size_t i = 0; i + 32 <= job->n; i += 32) {
        uint64_t v[4];
        memcpy(v, job->bytes + i, sizeof(v));
        a += v[0];
        b += v[1];
        c += v[2];
        d += v[3];
    }
    job->sum = a + b + c + d;
    return NULL;
}

/* Reads all bytes once, with one thread for each processor; this thread does the share of a thread
 * that cannot start. */
static void
read_all(const char *bytes)
{
    struct read_job jobs[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    bool started[MAX_THREADS] = {false};
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    n = n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
    for (long i = 0; i < n; i++) {
        size_t share = READ_BYTES / (size_t)n;
        jobs[i] = (struct read_job){bytes + (size_t)i * share, share, 0};
        started[i] = i && pthread_create(&threads[i], NULL, read_share, &jobs[i]) == 0;
    }
    for (long i = n; i-- > 0;) {
        if (started[i])
            pthread_join(threads[i], NULL);
        else
            read_share(&jobs[i]);
    }
}

static double
host_read(const struct xm_buffer *buffer, double seconds)
{
    const char *bytes = xm_buffer_host_ptr(buffer);
    double start = xm_now(), best = 1e30;
    if (!bytes)
        return 0;
    do {
        double t = xm_now();
        read_all(bytes);
        t = xm_now() - t;
        best = t < best ? t : best;
    } while (xm_now() - start < seconds);
    return READ_BYTES / best;
}

static enum xm_status
measure(struct xm_engine *engine, struct xm_queue *queue, struct xm_buffer *memory,
        double seconds, struct limits *out, struct xm_error *err)
{
    XM_TRY(xm_queue_fill(queue, memory, 0, 1, READ_BYTES, err));
    XM_TRY(xm_read_rate(engine, NULL, 0, seconds, &out->device_read, err));
    XM_TRY(xm_multiply_rate(engine, XM_F32, seconds, &out->multiply, err));
    out->multiply *= 2.0;
    XM_TRY(xm_queue_finish(queue, err));
    out->host_read = host_read(memory, seconds);
    return XM_OK;
}

enum xm_status
xm_bench_limits(struct xm_engine *engine, double seconds, struct limits *out,
                struct xm_error *err)
{
    struct xm_queue *queue = NULL;
    struct xm_buffer *memory = NULL;
    enum xm_status s = xm_queue_create(engine, &queue, err);
    if (s == XM_OK)
        s = xm_buffer_create(engine, XM_USE_DEVICE, READ_BYTES, &memory, err);
    if (s == XM_OK)
        s = measure(engine, queue, memory, seconds, out, err);
    xm_queue_destroy(queue);
    xm_buffer_unref(memory);
    return s;
}
