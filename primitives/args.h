/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel arguments in the order of the kernel's parameters.
 */
#ifndef XM_PRIMITIVES_ARGS_H
#define XM_PRIMITIVES_ARGS_H

#include "primitives/device_weight.h"
#include "primitives/launch.h"
#include "runtime/util/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_args {
    struct xm_arg arg[XM_KERNEL_ARGS];
    /* arguments appended; xm_queue_run refuses more than XM_KERNEL_ARGS */
    uint32_t n;
};

/* Appends an argument. `name` followed by `suffix` (NULL: nothing) is the name of the kernel's
 * parameter; xm_queue_run compares the two. Both strings must outlive `a`. An argument beyond
 * XM_KERNEL_ARGS is counted but not stored. */
static inline void
xm_put(struct xm_args *a, const char *name, const char *suffix, struct xm_arg arg)
{
    arg.name = name;
    arg.suffix = suffix;
    if (a->n++ < XM_KERNEL_ARGS)
        a->arg[a->n - 1] = arg;
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

/* Appends the four arguments of WEIGHT_PARAMETERS(name) of kernels/cl/include/weights.h: data,
 * scale, zero point and view. `view` is a view of w's weight; its numbers must fit into 32 bits
 * (xm_weight_unreadable returns NULL). w NULL: NULL buffers and zeros. */
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

/* Like xm_put_view, with w's own view. */
static inline void
xm_put_weight(struct xm_args *a, const char *name, const struct xm_device_weight *w)
{
    xm_put_view(a, name, w, w ? &w->host : NULL);
}

#ifdef __cplusplus
}
#endif
#endif
