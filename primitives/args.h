/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel arguments in the order of the kernel's parameters.
 */
#ifndef XM_PRIMITIVES_ARGS_H
#define XM_PRIMITIVES_ARGS_H

#include <assert.h>

#include "primitives/device_weight.h"
#include "primitives/launch.h"
#include "runtime/util/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MAX_ARGS = 32 };

struct xm_args {
    struct xm_arg arg[XM_MAX_ARGS];
    uint32_t n;
};

/* `name` is the kernel's parameter (xm_queue_run compares them), a string that stays. */
static inline void
xm_put(struct xm_args *a, const char *name, const char *suffix, struct xm_arg arg)
{
    assert(a->n < XM_MAX_ARGS);
    arg.name = name;
    arg.suffix = suffix;
    a->arg[a->n++] = arg;
}

static inline void
xm_put_buffer(struct xm_args *a, const char *name, const struct xm_buffer *b)
{
    xm_put(a, name, NULL, xm_arg_buffer(b));
}

static inline void
xm_put_uint(struct xm_args *a, const char *name, uint64_t v)
{
    xm_put(a, name, NULL, xm_arg_uint(v));
}

static inline void
xm_put_ulong(struct xm_args *a, const char *name, uint64_t v)
{
    xm_put(a, name, NULL, xm_arg_u64(v));
}

static inline void
xm_put_float(struct xm_args *a, const char *name, float v)
{
    xm_put(a, name, NULL, xm_arg_f32(v));
}

static inline void
xm_put_uint4(struct xm_args *a, const char *name, uint32_t x, uint32_t y, uint32_t z,
             uint32_t w)
{
    xm_put(a, name, NULL, xm_arg_u32x4(x, y, z, w));
}

/* WEIGHT_PARAMETERS(name) of kernels/cl/include/weights.h: data, scale, zero point, view. `view`
 * is a view of w's weight whose numbers fit (xm_weight_unreadable). */
static inline void
xm_put_view(struct xm_args *a, const char *name, const struct xm_device_weight *w,
            const struct xm_weight *view)
{
    const struct xm_arg none = xm_arg_u32x4(0, 0, 0, 0);
    xm_put(a, name, "_data", xm_arg_buffer(w ? w->data : NULL));
    xm_put(a, name, "_scale", xm_arg_buffer(w ? w->scale : NULL));
    xm_put(a, name, "_zp", xm_arg_buffer(w ? w->zero_point : NULL));
    xm_put(a, name, "_view",
           w ? xm_arg_u32x4(
                   (uint32_t)xm_weight_row_cols(view), (uint32_t)view->view.first_col,
                   (uint32_t)xm_weight_expert_rows(view), (uint32_t)view->view.first_row)
             : none);
}

/* w NULL: null pointers. */
static inline void
xm_put_weight(struct xm_args *a, const char *name, const struct xm_device_weight *w)
{
    xm_put_view(a, name, w, w ? &w->host : NULL);
}

/* ---- to go: arguments without names, launches without a row -------------------------- */

static inline void
xm_args_buffer(struct xm_args *a, const struct xm_buffer *b)
{
    xm_put_buffer(a, NULL, b);
}

static inline void
xm_args_uint(struct xm_args *a, uint64_t v)
{
    xm_put_uint(a, NULL, v);
}

static inline void
xm_args_ulong(struct xm_args *a, uint64_t v)
{
    xm_put_ulong(a, NULL, v);
}

static inline void
xm_args_float(struct xm_args *a, float v)
{
    xm_put_float(a, NULL, v);
}

static inline void
xm_args_uint4(struct xm_args *a, uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    xm_put_uint4(a, NULL, x, y, z, w);
}

static inline void
xm_args_view(struct xm_args *a, const struct xm_device_weight *w,
             const struct xm_weight *view)
{
    const uint32_t first = a->n;
    xm_put_view(a, NULL, w, view);
    for (uint32_t i = first; i < a->n; i++)
        a->arg[i].suffix = NULL;
}

static inline void
xm_args_weight(struct xm_args *a, const struct xm_device_weight *w)
{
    xm_args_view(a, w, w ? &w->host : NULL);
}

/* Enqueues over a global size in work-items; `single`: local size 1 (vector kernels),
 * else the driver chooses. */
static inline enum xm_status
xm_args_run(const struct xm_args *a, struct xm_queue *queue, struct xm_kernel *kernel,
            bool single, uint64_t x, uint64_t y, uint64_t z, struct xm_error *err)
{
    struct xm_launch launch = {{x, y, z}, {0, 0, 0}};
    if (single)
        launch.local[0] = launch.local[1] = launch.local[2] = 1;
    return xm_queue_run(queue, kernel, a->arg, a->n, &launch, err);
}

/* Enqueues x by y by z work-groups of `items` work-items in a row: gen kernels. */
static inline enum xm_status
xm_args_run_groups(const struct xm_args *a, struct xm_queue *queue,
                   struct xm_kernel *kernel, uint64_t items, uint64_t x, uint64_t y,
                   uint64_t z, struct xm_error *err)
{
    struct xm_launch launch = {{x * items, y, z}, {items, 1, 1}};
    return xm_queue_run(queue, kernel, a->arg, a->n, &launch, err);
}

/* Enqueues x by y by z sub-groups of `lanes` in a row, several a work-group; on CPU devices,
 * where a work-group does everything in step, one. The kernel returns where x was rounded up. */
static inline enum xm_status
xm_args_run_lanes(const struct xm_args *a, struct xm_queue *queue,
                  struct xm_kernel *kernel, uint32_t lanes, uint64_t x, uint64_t y,
                  uint64_t z, struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(xm_queue_engine(queue));
    bool cpu =
        xm_device_really_has(device, XM_CAP_HOST_VISIBLE); /* also as XM_DEVICE_AS */
    uint64_t items = (uint64_t)lanes * (cpu ? 1 : 4);
    struct xm_launch launch = {{xm_align_up(x * lanes, items), y, z}, {items, 1, 1}};
    return xm_queue_run(queue, kernel, a->arg, a->n, &launch, err);
}

/* The same with sub-groups of XM_SUB_GROUP: most sg kernels. */
static inline enum xm_status
xm_args_run_sub_groups(const struct xm_args *a, struct xm_queue *queue,
                       struct xm_kernel *kernel, uint64_t x, uint64_t y, uint64_t z,
                       struct xm_error *err)
{
    return xm_args_run_lanes(a, queue, kernel, XM_SUB_GROUP, x, y, z, err);
}

#ifdef __cplusplus
}
#endif
#endif
