/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel arguments in the order of the kernel's parameters.
 */
#ifndef XM_PRIMITIVES_ARGS_H
#define XM_PRIMITIVES_ARGS_H

#include <assert.h>

#include "primitives/device_weight.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MAX_ARGS = 24 };
struct xm_args {
    struct xm_arg arg[XM_MAX_ARGS];
    uint32_t n;
};

static inline void
xm_args_buffer(struct xm_args *a, const struct xm_buffer *b)
{
    assert(a->n < XM_MAX_ARGS);
    a->arg[a->n++] = xm_arg_buffer(b);
}

/* A uint of the kernel; callers have checked that it fits. */
static inline void
xm_args_uint(struct xm_args *a, uint64_t v)
{
    assert(a->n < XM_MAX_ARGS && v <= INT32_MAX);
    a->arg[a->n++] = xm_arg_i32((int32_t)v);
}

static inline void
xm_args_ulong(struct xm_args *a, uint64_t v)
{
    assert(a->n < XM_MAX_ARGS);
    a->arg[a->n++] = xm_arg_u64(v);
}

static inline void
xm_args_float(struct xm_args *a, float v)
{
    assert(a->n < XM_MAX_ARGS);
    a->arg[a->n++] = xm_arg_f32(v);
}

/* data, scale, zero point; w NULL: three null pointers. */
static inline void
xm_args_weight(struct xm_args *a, const struct xm_device_weight *w)
{
    xm_args_buffer(a, w ? w->data : 0);
    xm_args_buffer(a, w ? w->scale : 0);
    xm_args_buffer(a, w ? w->zero_point : 0);
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

#ifdef __cplusplus
}
#endif
#endif
