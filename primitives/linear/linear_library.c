/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of linear that libraries compute: oneDNN on the host, oneDNN's GPU engine.
 */
#include "primitives/linear/linear_rows.h"

const struct xm_linear_library *
xm_linear_library(const struct xm_variant *row)
{
    return row->family == XM_FAMILY_HOST     ? &xm_onednn_linear
           : row->family == XM_FAMILY_ONEDNN ? &xm_onednn_gpu_linear
                                             : NULL;
}

/* Returns whether the library computes segment 0 with its gate. */
static bool
gates(const struct xm_linear *l, const struct xm_linear_way *way)
{
    return l->desc.is_glu && xm_linear_gates(way->row);
}

void
xm_linear_library_release(struct xm_linear_way *way)
{
    for (uint32_t i = 0; i < XM_LINEAR_SEGMENTS && way->library; i++) {
        way->library->destroy(way->made[i]);
        way->made[i] = NULL;
    }
}

enum xm_status
xm_linear_library_build(const struct xm_linear *l, struct xm_linear_way *way,
                        struct xm_error *err)
{
    const struct xm_linear_desc *d = &l->desc;
    const struct xm_library_gate gate = xm_linear_gate(d);
    for (uint32_t i = 0; i < d->n; i++) {
        const struct xm_library_desc desc = {.weight = d->segment[i].weight,
                                             .bias = d->segment[i].bias,
                                             .src = d->src,
                                             .dst = d->dst,
                                             .gate =
                                                 gates(l, way) && i == 0 ? &gate : NULL,
                                             .chunk = d->chunk};
        XM_TRY(way->library->create(l->base.engine, &desc, &way->made[i], err));
    }
    return XM_OK;
}

uint64_t
xm_linear_library_scratch(const struct xm_linear *l, const struct xm_linear_way *way,
                          uint64_t tokens)
{
    uint64_t most = 0; /* segments run one after another and share the scratch */
    for (uint32_t i = 0; i < l->desc.n; i++) {
        uint64_t bytes = way->library->scratch(way->made[i], &l->base, tokens);
        most = bytes > most ? bytes : most;
    }
    if (gates(l, way) && l->desc.n == 2)
        most += xm_scratch_bytes(&l->base, xm_linear_y_bytes(l, tokens));
    return most;
}

/* Enqueues the product of one segment; `times` is the factor of a gate. */
static enum xm_status
run_segment(const struct xm_linear_call *c, uint32_t i, struct xm_buffer *y,
            struct xm_onednn_span times, struct xm_error *err)
{
    const struct xm_library_call call = {c->operands[XM_LINEAR_X].buffer, y, times,
                                         c->tokens};
    /* Each segment takes its scratch from the same free bytes. The views taken before belong to the
     * caller. */
    struct xm_scratch own = *c->scratch;
    own.n_views = 0;
    enum xm_status status =
        c->way->library->run(c->way->made[i], &call, &own, c->run->queue, err);
    xm_scratch_end(&own);
    return status;
}

/* Enqueues y = act(x W_0^T + bias_0) up, where up is the product of segment 1 or operand `factor`.
 * The library's product of segment 0 applies act and the multiplication. */
static enum xm_status
run_gate(const struct xm_linear_call *c, struct xm_error *err)
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
        XM_TRY(run_segment(c, 1, up.buffer, none, err));
    }
    return run_segment(c, 0, c->operands[XM_LINEAR_Y].buffer, up, err);
}

enum xm_status
xm_linear_library_run(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_onednn_span none = {NULL, 0};
    if (gates(c->l, c->way))
        return run_gate(c, err);
    for (uint32_t i = 0; i < c->l->desc.n; i++)
        XM_TRY(run_segment(c, i, c->operands[XM_LINEAR_Y + i].buffer, none, err));
    return XM_OK;
}
