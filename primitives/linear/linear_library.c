/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of linear that are a library's: oneDNN on the host, oneDNN's GPU engine.
 */
#include "primitives/linear/linear_rows.h"

static struct xm_buffer *
x_of(const struct xm_linear_call *c)
{
    return c->operands[XM_LINEAR_X].buffer;
}

static enum xm_status
build_onednn(struct xm_linear *l, struct xm_error *err)
{
    for (uint32_t i = 0; i < l->desc.n; i++) {
        const struct xm_linear_segment *s = &l->desc.segment[i];
        if (!l->onednn[i])
            XM_TRY(xm_onednn_linear_create(l->base.engine, s->weight, s->bias,
                                           l->desc.src, xm_linear_product(&l->desc),
                                           l->desc.dst, &l->onednn[i], err));
    }
    return XM_OK;
}

static enum xm_status
build_onednn_gpu(struct xm_linear *l, struct xm_error *err)
{
    for (uint32_t i = 0; i < l->desc.n; i++) {
        const struct xm_linear_segment *s = &l->desc.segment[i];
        const struct xm_onednn_gate gate = xm_linear_onednn_gate(&l->desc);
        const struct xm_onednn_gpu_linear_desc desc = {
            .weight = s->weight,
            .bias = s->bias,
            .dst = l->desc.dst,
            .gate = l->desc.is_glu && i == 0 ? &gate : NULL,
            .chunk = l->desc.chunk};
        if (!l->onednn_gpu[i])
            XM_TRY(xm_onednn_gpu_linear_create(l->base.engine, &desc, &l->onednn_gpu[i],
                                               err));
    }
    return XM_OK;
}

static uint64_t
onednn_bytes(const struct xm_linear *l, uint64_t tokens)
{
    uint64_t most = 0; /* the segments share it: they run one after the other */
    for (uint32_t i = 0; i < l->desc.n; i++) {
        uint64_t bytes = xm_onednn_linear_scratch(l->onednn[i], &l->base, tokens);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* What is left of the scratch, for each segment again; views in it are the caller's. */
static struct xm_scratch
rest_of_scratch(const struct xm_linear_call *c)
{
    struct xm_scratch rest = *c->scratch;
    rest.n_views = 0;
    return rest;
}

static enum xm_status
run_onednn(const struct xm_linear_call *c, struct xm_error *err)
{
    enum xm_status status = XM_OK;
    for (uint32_t i = 0; i < c->l->desc.n && status == XM_OK; i++) {
        struct xm_scratch own = rest_of_scratch(c);
        status = xm_onednn_linear_run(c->l->onednn[i], x_of(c),
                                      c->operands[XM_LINEAR_Y + i].buffer, c->tokens,
                                      &own, c->run->queue, err);
        xm_scratch_end(&own);
    }
    return status;
}

static uint64_t
onednn_gpu_bytes(const struct xm_linear *l, uint64_t tokens)
{
    uint64_t most = 0; /* shared, as above */
    for (uint32_t i = 0; i < l->desc.n; i++) {
        uint64_t bytes = xm_onednn_gpu_linear_scratch(l->onednn_gpu[i], &l->base);
        most = bytes > most ? bytes : most;
    }
    if (l->desc.is_glu && l->desc.n == 2)
        most += xm_scratch_bytes(&l->base, xm_linear_y_bytes(l, tokens));
    return most;
}

/* The product of one segment; `times` of a gate. */
static enum xm_status
run_onednn_gpu_segment(const struct xm_linear_call *c, uint32_t i, struct xm_buffer *y,
                       struct xm_onednn_span times, struct xm_error *err)
{
    const struct xm_onednn_gpu_linear_call call = {x_of(c), y, times, c->tokens};
    struct xm_scratch own = rest_of_scratch(c);
    enum xm_status status =
        xm_onednn_gpu_linear_run(c->l->onednn_gpu[i], &call, &own, c->run->queue, err);
    xm_scratch_end(&own);
    return status;
}

/* y = act(x W_0^T) up, with up from segment 1 or from outside; the rest is post-ops. */
static enum xm_status
run_onednn_gpu_glu(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_linear_desc *d = &c->l->desc;
    const struct xm_onednn_span none = {NULL, 0};
    struct xm_onednn_span up = {c->operands[XM_LINEAR_FACTOR].buffer,
                                d->slice * xm_linear_weight(c->l, 0)->rows *
                                    (xm_element_bits(d->dst) / 8)};
    if (d->n == 2) {
        up.offset = 0;
        XM_TRY(xm_scratch_take(c->scratch, xm_linear_y_bytes(c->l, c->tokens), &up.buffer,
                               err));
        XM_TRY(run_onednn_gpu_segment(c, 1, up.buffer, none, err));
    }
    return run_onednn_gpu_segment(c, 0, c->operands[XM_LINEAR_Y].buffer, up, err);
}

static enum xm_status
run_onednn_gpu(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_onednn_span none = {NULL, 0};
    if (c->l->desc.is_glu)
        return run_onednn_gpu_glu(c, err);
    for (uint32_t i = 0; i < c->l->desc.n; i++)
        XM_TRY(
            run_onednn_gpu_segment(c, i, c->operands[XM_LINEAR_Y + i].buffer, none, err));
    return XM_OK;
}

const struct xm_linear_library *
xm_linear_library(const struct xm_variant *row)
{
    static const struct xm_linear_library host = {build_onednn, onednn_bytes, run_onednn},
                                          gpu = {build_onednn_gpu, onednn_gpu_bytes,
                                                 run_onednn_gpu};
    return row->family == XM_FAMILY_HOST     ? &host
           : row->family == XM_FAMILY_ONEDNN ? &gpu
                                             : NULL;
}
