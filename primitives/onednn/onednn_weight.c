/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights for oneDNN; see onednn_weight.h.
 */
#include "primitives/onednn/onednn_weight.h"

#include <stdio.h>

#include "primitives/args.h"
#include "runtime/kernel_defines.h"

static bool
is_4_bits(enum xm_element e)
{
    return e == XM_U4 || e == XM_I4;
}

static bool
is_integer(enum xm_element e)
{
    return is_4_bits(e) || e == XM_U8 || e == XM_I8;
}

/* The next three functions return the bytes of one expert's numbers, scales and zero points. */
static uint64_t
data_step(const struct xm_weight *w)
{
    return w->rows * w->cols * xm_element_bits(w->element) / 8;
}

static uint64_t
scale_step(const struct xm_weight *w)
{
    return w->rows * xm_weight_groups(w) * xm_element_bits(w->scale_element) / 8;
}

static uint64_t
zero_point_step(const struct xm_weight *w)
{
    if (!w->zero_point.p || w->zero_point_is_scalar)
        return 0;
    return w->rows * xm_weight_groups(w) * xm_element_bits(w->zero_point_element) / 8;
}

static const char *
zero_point_refusal(const struct xm_weight *w)
{
    if (!is_integer(w->zero_point_element))
        return "oneDNN needs zero points of 4 or 8 bits";
    if (!is_4_bits(w->zero_point_element))
        return NULL;
    if (w->zero_point_is_scalar)
        return "oneDNN needs 8 bits for a zero point of the whole weight";
    return w->rows % 2 != 0 ? "oneDNN needs rows of whole bytes" : NULL;
}

const char *
xm_onednn_refuses_quantised(const struct xm_device_info *device)
{
    return device->arch <= XM_ARCH_XE_LP
               ? "oneDNN's compressed matmul is reference code on xe_lp"
               : NULL;
}

static const char *
quantised_refusal(const struct xm_device_info *device, const struct xm_weight *w)
{
    const char *why = xm_onednn_refuses_quantised(device);
    if (why)
        return why;
    if (!is_integer(w->element))
        return "oneDNN needs quantised weights of 4 or 8 bits";
    if (w->cols % 2 != 0)
        return "oneDNN needs rows of whole bytes";
    if (xm_weight_groups(w) > 1 && w->order != XM_SCALE_GROUP_MAJOR)
        return "the scales are not in the order that oneDNN needs";
    return w->zero_point.p ? zero_point_refusal(w) : NULL;
}

const char *
xm_onednn_weight_refuses(const struct xm_device_info *device, const struct xm_weight *w)
{
    const char *why = NULL;
    if (xm_weight_is_blocks(w))
        return "oneDNN does not support block formats";
    if (xm_weight_is_codes(w))
        return "oneDNN does not support small floats, codebooks and scales of experts";
    if (!xm_weight_is_whole(w))
        return "oneDNN does not support slices of weights";
    if (xm_weight_is_quantised(w))
        why = quantised_refusal(device, w);
    else if (w->element != XM_F16)
        why = "oneDNN multiplies f16 activations with f16 or integer weights";
    if (why || w->experts == 1)
        return why;
    if (data_step(w) % device->base_align || scale_step(w) % device->base_align ||
        zero_point_step(w) % device->base_align)
        return "the experts' weights are not aligned for oneDNN";
    return NULL;
}

/* ---- turning ------------------------------------------------------------------------ */

/* Returns the weight with scale order and zero-point type as oneDNN wants them; moves no bytes. */
static struct xm_weight
in_onednn_order(const struct xm_weight *w)
{
    struct xm_weight o = *w;
    if (xm_weight_groups(w) > 1)
        o.order = XM_SCALE_GROUP_MAJOR;
    if (w->zero_point.p && w->zero_point_is_scalar && is_4_bits(w->zero_point_element))
        o.zero_point_element = w->zero_point_element == XM_U4 ? XM_U8 : XM_I8;
    return o;
}

bool
xm_onednn_weight_can_turn(const struct xm_device_info *device, const struct xm_weight *w)
{
    const struct xm_weight turned = in_onednn_order(w);
    return xm_onednn_weight_refuses(device, w) &&
           !xm_onednn_weight_refuses(device, &turned);
}

static const struct xm_launch_shape shape = {
    XM_ITEM, 0, {XM_ROWS}, {XM_BLOCKS, 1}, {XM_EXPERTS, 1}};

/* Creates *out and enqueues the transposition into it of `in`, scales or zero points of type e of
 * weight w. */
static enum xm_status
turn(const struct xm_weight *w, const struct xm_buffer *in, enum xm_element e,
     struct xm_queue *queue, struct xm_buffer **out, struct xm_error *err)
{
    struct xm_engine *engine = xm_queue_engine(queue);
    uint32_t bits = xm_element_bits(e);
    uint64_t groups = xm_weight_groups(w);
    const struct xm_counts counts = {.n = {[XM_ROWS] = bits == 4 ? w->rows / 2 : w->rows,
                                           [XM_BLOCKS] = groups,
                                           [XM_EXPERTS] = w->experts}};
    struct xm_kernel *kernel;
    struct xm_args a = {.n = 0};
    char options[16];
    xm_defines_print(options, sizeof(options), "-DBITS=%u", bits);
    XM_TRY(xm_buffer_create(engine, XM_USE_WEIGHT,
                            w->experts * w->rows * groups * bits / 8, out, err));
    XM_TRY(xm_engine_kernel(engine, "weight_turn_ref", options, &kernel, err));
    xm_put_buffer(&a, "in", in);
    xm_put_buffer(&a, "out", *out);
    return xm_launch(&shape, kernel, &counts, &a, queue, err);
}

/* Creates *out and enqueues a write of w's single zero point into it, in 8 bits. */
static enum xm_status
widen(const struct xm_weight *w, struct xm_queue *queue, struct xm_buffer **out,
      struct xm_error *err)
{
    uint8_t byte = (uint8_t)(int)xm_weight_zero_point_at(w, 0, 0, 0);
    XM_TRY(xm_buffer_create(xm_queue_engine(queue), XM_USE_WEIGHT, 1, out, err));
    return xm_queue_write(queue, *out, 0, &byte, 1, err);
}

/* Creates the scales and zero points that differ in `to`, the weight as oneDNN wants it; NULL
 * buffers: no difference. Waits. */
static enum xm_status
make_parts(const struct xm_device_weight *d, const struct xm_weight *to,
           struct xm_queue *queue, struct xm_buffer **scale,
           struct xm_buffer **zero_point, struct xm_error *err)
{
    const struct xm_weight *w = &d->host;
    bool turns = w->order != to->order;
    if (turns)
        XM_TRY(turn(w, d->scale, w->scale_element, queue, scale, err));
    if (turns && zero_point_step(w) > 0)
        XM_TRY(turn(w, d->zero_point, w->zero_point_element, queue, zero_point, err));
    if (w->zero_point.p && w->zero_point_element != to->zero_point_element)
        XM_TRY(widen(w, queue, zero_point, err));
    return xm_queue_finish(queue, err);
}

static void
replace(struct xm_buffer **at, struct xm_buffer *with)
{
    if (!with)
        return;
    xm_buffer_unref(*at);
    *at = with;
}

enum xm_status
xm_onednn_weight_turn(struct xm_engine *engine, struct xm_device_weight *weight,
                      struct xm_error *err)
{
    const struct xm_weight to = in_onednn_order(&weight->host);
    struct xm_buffer *scale = NULL, *zero_point = NULL;
    struct xm_queue *queue;
    XM_TRY(xm_queue_create(engine, &queue, err));
    enum xm_status status = make_parts(weight, &to, queue, &scale, &zero_point, err);
    xm_queue_destroy(queue);
    if (status != XM_OK) {
        xm_buffer_unref(scale);
        xm_buffer_unref(zero_point);
        return status;
    }
    replace(&weight->scale, scale);
    replace(&weight->zero_point, zero_point);
    weight->host.order = to.order;
    weight->host.zero_point_element = to.zero_point_element;
    return XM_OK;
}

/* ---- problems ----------------------------------------------------------------------- */

struct xm_onednn_problem
xm_onednn_weight_problem(const struct xm_weight *w)
{
    struct xm_onednn_problem p = {.n = w->rows, .k = w->cols, .w = w->element};
    if (!xm_weight_is_quantised(w))
        return p;
    p.group = w->group;
    p.scale = w->scale_element;
    if (w->zero_point.p) {
        p.zero_point = w->zero_point_element;
        p.one_zero_point = w->zero_point_is_scalar;
    }
    return p;
}

void
xm_onednn_weight_spans(const struct xm_device_weight *d, uint64_t expert,
                       struct xm_onednn_spans *spans)
{
    const struct xm_weight *w = &d->host;
    spans->arg[XM_ONEDNN_W] = (struct xm_onednn_span){d->data, expert * data_step(w)};
    spans->arg[XM_ONEDNN_SCALE] =
        (struct xm_onednn_span){d->scale, expert * scale_step(w)};
    spans->arg[XM_ONEDNN_ZERO_POINT] =
        (struct xm_onednn_span){d->zero_point, expert * zero_point_step(w)};
}
