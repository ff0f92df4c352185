/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of multiply-adds that access no memory in their loop. A pass is long enough to make the
 * cost of its launch negligible. */
#include "runtime/multiply_rate.h"

#include "runtime/util/clock.h"

/* A pass: its kernel, work-items for each compute unit, vector lanes of a work-item, loop
 * iterations. */
struct shape {
    const char *kernel;
    uint64_t items, lanes;
    uint32_t steps;
    uint64_t local; /* local size; 0: the driver chooses it */
};
enum { SUMS = 16 }; /* sums of each lane, as in the kernels */

static const struct shape shapes[] = {
    [false] = {"limit_multiply_gen", 2048, 1, 1 << 13, 0},
    [true] = {"limit_multiply_vec", 4, 16, 1 << 16, 1},
};

static enum xm_status
time_passes(struct xm_queue *queue, struct xm_kernel *kernel, struct xm_buffer *out,
            const struct shape *s, uint64_t items, double seconds, double *best,
            struct xm_error *err)
{
    const struct xm_launch launch = {{items, 1, 1}, {s->local, s->local, s->local}};
    const struct xm_arg args[] = {xm_arg_buffer(out), xm_arg_uint(s->steps)};
    double end = 0.0;
    *best = 0.0;
    for (double start = xm_now(); end == 0.0 || start < end;) {
        XM_TRY(xm_queue_run(queue, kernel, args, XM_ARRAY_LEN(args), &launch, err));
        XM_TRY(xm_queue_finish(queue, err));
        const double now = xm_now();
        if (end > 0.0 && (*best == 0.0 || now - start < *best))
            *best = now - start;
        end = end > 0.0 ? end : now + seconds;
        start = now;
    }
    return XM_OK;
}

enum xm_status
xm_multiply_rate(struct xm_engine *engine, enum xm_element element, double seconds,
                 double *rate, struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(engine);
    const struct shape *shape = &shapes[device->kind == XM_DEVICE_CPU];
    const uint64_t units = device->compute_units + !device->compute_units;
    const uint64_t items = units * shape->items;
    const bool is_half = element == XM_F16 && xm_device_has(device, XM_CAP_FP16);
    struct xm_queue *queue = NULL;
    struct xm_kernel *kernel = NULL;
    struct xm_buffer *out = NULL;
    double best = 0.0;
    enum xm_status s = xm_engine_kernel(
        engine, shape->kernel, is_half ? "-DUSE_HALF=1" : "-DUSE_HALF=0", &kernel, err);
    if (s == XM_OK)
        s = xm_queue_create(engine, &queue, err);
    if (s == XM_OK)
        s = xm_buffer_create(engine, XM_USE_DEVICE, items * shape->lanes * sizeof(float),
                             &out, err);
    if (s == XM_OK)
        s = time_passes(queue, kernel, out, shape, items, seconds, &best, err);
    if (s == XM_OK)
        *rate = best > 0.0
                    ? (double)SUMS * (double)(shape->lanes * items) * shape->steps / best
                    : 0.0;
    xm_queue_destroy(queue);
    xm_buffer_unref(out);
    return s;
}
