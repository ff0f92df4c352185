/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights for oneDNN; see onednn_weight.h.
 */
#include "primitives/onednn/onednn_weight.h"

#include "primitives/args.h"

static enum xm_element
scale_element(const struct xm_weight *w)
{
    return w->scale_element == XM_F16 ? XM_F16 : XM_F32;
}

static bool
is_signed(enum xm_element e)
{
    return e == XM_I4 || e == XM_I8;
}

static bool
is_integer(enum xm_element e)
{
    return e == XM_U4 || e == XM_U8 || is_signed(e);
}

static uint64_t
groups_of(const struct xm_weight *w)
{
    return w->experts * w->rows * xm_weight_groups(w);
}

/* Bytes of the numbers, scales and zero points of one expert. */
static uint64_t
data_step(const struct xm_weight *w)
{
    return w->rows * w->cols * xm_element_bits(w->element) / 8;
}

static uint64_t
scale_step(const struct xm_weight *w)
{
    return w->rows * xm_weight_groups(w) * xm_element_bits(scale_element(w)) / 8;
}

static uint64_t
zero_point_step(const struct xm_weight *w)
{
    return w->rows * xm_weight_groups(w);
}

static const char *
quantised_refusal(const struct xm_device_info *device, const struct xm_weight *w)
{
    if (device->arch <= XM_ARCH_XE_LP)
        return "oneDNN's compressed matmul is reference code on xe_lp";
    if (!is_integer(w->element))
        return "oneDNN takes quantised weights of 4 or 8 bits";
    if (w->zero_point.p && !is_integer(w->zero_point_element))
        return "oneDNN takes zero points of 4 or 8 bits";
    if (w->cols % 2 != 0)
        return "oneDNN wants rows of whole bytes";
    return NULL;
}

const char *
xm_onednn_weight_refuses(const struct xm_device_info *device, const struct xm_weight *w)
{
    const char *why = NULL;
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

static enum xm_status
turn(struct xm_onednn_weight *o, struct xm_engine *engine, struct xm_queue *queue,
     struct xm_error *err)
{
    const struct xm_weight *w = &o->weight->host;
    struct xm_kernel *kernel;
    struct xm_args a = {.n = 0};
    XM_TRY(xm_weight_kernel(engine, "weight_turn_ref", w, &kernel, err, "-DOUT=%s",
                            xm_element_text(scale_element(w))));
    xm_args_buffer(&a, o->weight->scale);
    xm_args_buffer(&a, o->weight->zero_point);
    xm_args_buffer(&a, o->scale);
    xm_args_buffer(&a, o->zero_point);
    xm_args_uint(&a, w->rows);
    XM_TRY(xm_args_run(&a, queue, kernel, false, w->experts * w->rows,
                       xm_weight_groups(w), 1, err));
    return xm_queue_finish(queue, err);
}

static enum xm_status
create_turned(struct xm_onednn_weight *o, struct xm_engine *engine, struct xm_error *err)
{
    const struct xm_weight *w = &o->weight->host;
    struct xm_queue *queue;
    XM_TRY(xm_buffer_create(engine, XM_USE_WEIGHT, w->experts * scale_step(w), &o->scale,
                            err));
    if (w->zero_point.p)
        XM_TRY(
            xm_buffer_create(engine, XM_USE_WEIGHT, groups_of(w), &o->zero_point, err));
    XM_TRY(xm_queue_create(engine, &queue, err));
    enum xm_status status = turn(o, engine, queue, err);
    xm_queue_destroy(queue);
    return status;
}

enum xm_status
xm_onednn_weight_init(struct xm_onednn_weight *o, struct xm_engine *engine,
                      struct xm_device_weight *weight, struct xm_error *err)
{
    *o = (struct xm_onednn_weight){weight, NULL, NULL};
    xm_device_weight_ref(weight);
    if (!xm_weight_is_quantised(&weight->host))
        return XM_OK;
    enum xm_status status = create_turned(o, engine, err);
    if (status != XM_OK)
        xm_onednn_weight_fini(o);
    return status;
}

void
xm_onednn_weight_fini(struct xm_onednn_weight *o)
{
    xm_device_weight_unref(o->weight);
    xm_buffer_unref(o->scale);
    xm_buffer_unref(o->zero_point);
    *o = (struct xm_onednn_weight){NULL, NULL, NULL};
}

struct xm_onednn_problem
xm_onednn_weight_problem(const struct xm_weight *w)
{
    struct xm_onednn_problem p = {.n = w->rows, .k = w->cols, .w = w->element};
    if (!xm_weight_is_quantised(w))
        return p;
    p.group = w->group;
    p.scale = scale_element(w);
    if (w->zero_point.p)
        p.zero_point = is_signed(w->zero_point_element) ? XM_I8 : XM_U8;
    return p;
}

void
xm_onednn_weight_spans(const struct xm_onednn_weight *o, uint64_t expert,
                       struct xm_onednn_spans *spans)
{
    const struct xm_weight *w = &o->weight->host;
    spans->arg[XM_ONEDNN_W] =
        (struct xm_onednn_span){o->weight->data, expert * data_step(w)};
    spans->arg[XM_ONEDNN_SCALE] =
        (struct xm_onednn_span){o->scale, expert * scale_step(w)};
    spans->arg[XM_ONEDNN_ZERO_POINT] =
        (struct xm_onednn_span){o->zero_point, expert * zero_point_step(w)};
}
