/* SPDX-License-Identifier: Apache-2.0
 *
 * Streaming reads. CPU devices read one stretch a work-item, others read side by side.
 */
#include "runtime/read_rate.h"

#include <time.h>

enum { WORD = 64, MOST_BYTES = 256 << 20, CACHES = 4 };
enum { CPU_ITEMS = 4, GPU_ITEMS = 2048 }; /* for each compute unit */

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct reading {
    struct xm_queue *queue;
    struct xm_kernel *kernel;
    struct xm_buffer *memory, *sums;
    uint64_t bytes, items;
    bool single; /* local size 1 */
};

static enum xm_status
read_once(const struct reading *r, struct xm_error *err)
{
    const struct xm_arg args[] = {xm_arg_buffer(r->memory), xm_arg_buffer(r->sums),
                                  xm_arg_u64(r->bytes / WORD)};
    const uint64_t local = r->single;
    const struct xm_launch launch = {{r->items, 1, 1}, {local, local, local}};
    XM_TRY(xm_queue_run(r->queue, r->kernel, args, XM_ARRAY_LEN(args), &launch, err));
    return xm_queue_finish(r->queue, err);
}

/* The first pass compiles and touches pages. */
static enum xm_status
time_passes(const struct reading *r, double seconds, double *rate, struct xm_error *err)
{
    uint64_t passes = 0;
    XM_TRY(xm_queue_fill(r->queue, r->memory, 0, 1, r->bytes, err));
    XM_TRY(read_once(r, err));
    double start = now(), t;
    do {
        XM_TRY(read_once(r, err));
        passes++;
        t = now() - start;
    } while (t < seconds);
    *rate = (double)(passes * r->bytes) / t;
    return XM_OK;
}

enum xm_status
xm_read_rate(struct xm_engine *engine, double seconds, double *rate, struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(engine);
    uint64_t units = device->compute_units + !device->compute_units;
    struct reading r = {.single = device->kind == XM_DEVICE_CPU, .bytes = MOST_BYTES};
    r.items = units * (r.single ? CPU_ITEMS : GPU_ITEMS);
    if (r.bytes > device->max_alloc_bytes)
        r.bytes = device->max_alloc_bytes / WORD * WORD;
    if (r.bytes < CACHES * device->cache_bytes)
        return xm_fail(err, XM_UNSUPPORTED,
                       "%llu bytes are too few to tell memory from a cache of %llu",
                       (unsigned long long)r.bytes,
                       (unsigned long long)device->cache_bytes);
    enum xm_status s = xm_engine_kernel(
        engine, r.single ? "limit_read_vec" : "limit_read_gen", "", &r.kernel, err);
    if (s == XM_OK)
        s = xm_queue_create(engine, &r.queue, err);
    if (s == XM_OK)
        s = xm_buffer_create(engine, XM_USE_DEVICE, r.bytes, &r.memory, err);
    if (s == XM_OK)
        s = xm_buffer_create(engine, XM_USE_DEVICE, r.items * WORD, &r.sums, err);
    if (s == XM_OK)
        s = time_passes(&r, seconds, rate, err);
    xm_queue_destroy(r.queue);
    xm_buffer_unref(r.memory);
    xm_buffer_unref(r.sums);
    return s;
}
