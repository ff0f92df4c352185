/* SPDX-License-Identifier: Apache-2.0
 *
 * Streaming reads. On CPU devices each work-item reads one contiguous part, on others neighbouring
 * work-items read neighbouring words. */
#include "runtime/read_rate.h"

#include "runtime/util/clock.h"

enum { WORD = 64, USUAL_BYTES = 256 << 20, CACHES = 4 };
enum { CPU_ITEMS = 4, GPU_ITEMS = 2048 }; /* for each compute unit */

struct reading {
    struct xm_queue *queue;
    struct xm_kernel *kernel;
    struct xm_buffer *const *buffers;
    size_t n;
    struct xm_buffer *sums;
    uint64_t most; /* most bytes that a pass reads */
    uint64_t items;
    bool single; /* local size 1 */
};

/* Bytes to read in a pass: so many that only a small part of them stays in the cache of a large
 * processor, of which this device may be a part. */
static uint64_t
enough_bytes(const struct xm_device_info *device)
{
    const uint64_t caches = CACHES * device->cache_bytes;
    return caches > USUAL_BYTES ? caches : USUAL_BYTES;
}

/* Runs one pass over the buffers; *bytes: how many bytes it read, at most r->most. */
static enum xm_status
read_once(const struct reading *r, uint64_t *bytes, struct xm_error *err)
{
    const uint64_t local = r->single;
    const struct xm_launch launch = {{r->items, 1, 1}, {local, local, local}};
    *bytes = 0;
    for (size_t i = 0; i < r->n && *bytes < r->most; i++) {
        uint64_t part = xm_buffer_bytes(r->buffers[i]);
        part = part < r->most - *bytes ? part : r->most - *bytes;
        const struct xm_arg args[] = {xm_arg_buffer(r->buffers[i]),
                                      xm_arg_buffer(r->sums), xm_arg_u64(part / WORD)};
        XM_TRY(xm_queue_run(r->queue, r->kernel, args, XM_ARRAY_LEN(args), &launch, err));
        *bytes += part / WORD * WORD;
    }
    return xm_queue_finish(r->queue, err);
}

/* Measures the rate of the fastest pass, because others may be slowed down by other work of the
 * machine. The pass before them compiles the kernel and touches the pages. */
static enum xm_status
time_passes(const struct reading *r, double seconds, double *rate, struct xm_error *err)
{
    uint64_t bytes;
    XM_TRY(read_once(r, &bytes, err));
    const double end = xm_now() + seconds;
    *rate = 0.0;
    for (double start = xm_now(); start < end;) {
        XM_TRY(read_once(r, &bytes, err));
        const double t = xm_now();
        if (*rate * (t - start) < (double)bytes)
            *rate = (double)bytes / (t - start);
        start = t;
    }
    return XM_OK;
}

/* Allocates a buffer of at most `most` bytes and writes to it, so that its pages exist. */
static enum xm_status
make_memory(struct xm_engine *engine, struct xm_queue *queue, uint64_t most,
            struct xm_buffer **out, struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(engine);
    const uint64_t bytes =
        device->max_alloc_bytes < most ? device->max_alloc_bytes : most;
    if (bytes < CACHES * device->cache_bytes)
        return xm_fail(err, XM_UNSUPPORTED,
                       "a buffer of %llu MiB is too small to measure memory beside a "
                       "cache of %llu MiB",
                       (unsigned long long)bytes >> 20,
                       (unsigned long long)device->cache_bytes >> 20);
    XM_TRY(xm_buffer_create(engine, XM_USE_DEVICE, bytes, out, err));
    return xm_queue_fill(queue, *out, 0, 1, bytes, err);
}

enum xm_status
xm_read_rate(struct xm_engine *engine, struct xm_buffer *const *buffers, size_t n,
             double seconds, double *rate, struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(engine);
    uint64_t units = device->compute_units + !device->compute_units, bytes = 0;
    struct xm_buffer *own = NULL;
    struct reading r = {
        .buffers = buffers, .n = n, .single = device->kind == XM_DEVICE_CPU};
    r.most = enough_bytes(device);
    r.items = units * (r.single ? CPU_ITEMS : GPU_ITEMS);
    for (size_t i = 0; i < n; i++)
        bytes += xm_buffer_bytes(buffers[i]);
    enum xm_status s = xm_engine_kernel(
        engine, r.single ? "limit_read_vec" : "limit_read_gen", "", &r.kernel, err);
    if (s == XM_OK)
        s = xm_queue_create(engine, &r.queue, err);
    if (s == XM_OK)
        s = xm_buffer_create(engine, XM_USE_DEVICE, r.items * WORD, &r.sums, err);
    if (s == XM_OK && bytes < CACHES * device->cache_bytes) {
        r.buffers = &own;
        r.n = 1;
        /* a caller that gave buffers does not expect a very large allocation */
        s = make_memory(engine, r.queue, n ? USUAL_BYTES : r.most, &own, err);
    }
    if (s == XM_OK)
        s = time_passes(&r, seconds, rate, err);
    xm_queue_destroy(r.queue);
    xm_buffer_unref(own);
    xm_buffer_unref(r.sums);
    return s;
}
