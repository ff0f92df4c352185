/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishes a row of linear whose products only multiply:
 *
 *     y += addend
 *     y  = act(y) up        up: the product of segment 1, or the factor
 *
 * The first product of a GLU is written to y; the second product, or the used slice of a factor
 * that has several slices, to scratch.
 */
#include <string.h>

#include "primitives/eltwise/eltwise.h"
#include "primitives/layout/layout.h"
#include "primitives/linear/linear_rows.h"

/* Returns whether the row of every class adds the addend itself; the next function, whether it
 * computes the GLU. */
static bool
all_add(const struct xm_linear *l)
{
    bool all = true;
    for (size_t c = 0; c < XM_LINEAR_CLASSES; c++)
        all &= xm_linear_adds(l->way[c].row);
    return all;
}

static bool
all_gate(const struct xm_linear *l)
{
    bool all = true;
    for (size_t c = 0; c < XM_LINEAR_CLASSES; c++)
        all &= xm_linear_gates(l->way[c].row);
    return all;
}

/* Returns whether `up` must be in scratch: it is a product, or a slice of a factor, which is not
 * dense. */
static bool
up_is_in_scratch(const struct xm_linear *l)
{
    return l->desc.n == 2 || l->desc.slices > 1;
}

enum xm_status
xm_linear_after_create(struct xm_linear *l, struct xm_error *err)
{
    const struct xm_linear_desc *d = &l->desc;
    struct xm_engine *engine = l->base.engine;
    if (d->has_addend && !all_add(l)) {
        const struct xm_eltwise_desc add = {
            .fn = XM_FN_ADD, .a = d->dst, .b = d->dst, .y = d->dst};
        return xm_eltwise_create(engine, &add, &l->after.add, err);
    }
    if (!d->is_glu || all_gate(l))
        return XM_OK;
    const struct xm_glu_desc glu = {d->activation, d->dst};
    const struct xm_copy_desc slice = {d->dst};
    XM_TRY(xm_glu_create(engine, &glu, &l->after.glu, err));
    return d->slices > 1 ? xm_copy_create(engine, &slice, &l->after.slice, err) : XM_OK;
}

void
xm_linear_after_destroy(struct xm_linear_after *a)
{
    xm_primitive_destroy(a->add);
    xm_primitive_destroy(a->glu);
    xm_primitive_destroy(a->slice);
}

uint64_t
xm_linear_after_bytes(const struct xm_linear *l, uint64_t tokens)
{
    return l->after.glu && up_is_in_scratch(l)
               ? xm_scratch_bytes(&l->base, xm_linear_y_bytes(l, tokens))
               : 0;
}

/* Enqueues to = factor[:,slice,:]. */
static enum xm_status
copy_slice(const struct xm_linear_call *c, const struct xm_operand *to,
           struct xm_error *err)
{
    const struct xm_linear_desc *d = &c->l->desc;
    const int64_t rows = (int64_t)d->segment[0].weight->host.rows;
    const struct xm_operand o[XM_COPY_N_OPERANDS] = {
        [XM_COPY_SRC] = c->operands[XM_LINEAR_FACTOR], [XM_COPY_DST] = *to};
    const struct xm_copy_space space = {.rank = 2,
                                        .extent = {(int64_t)c->tokens, rows},
                                        .src_stride = {d->slices * rows, 1},
                                        .dst_stride = {rows, 1},
                                        .src_offset = d->slice * rows};
    return xm_copy_enqueue(c->l->after.slice, o, &space, c->run, err);
}

static enum xm_status
run_glu(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_linear *l = c->l;
    struct xm_operand parts[XM_LINEAR_N_OPERANDS], up = c->operands[XM_LINEAR_Y];
    struct xm_linear_call products = *c;
    up.buffer = c->operands[XM_LINEAR_FACTOR].buffer;
    if (up_is_in_scratch(l))
        XM_TRY(xm_scratch_take(c->scratch, xm_linear_y_bytes(l, c->tokens), &up.buffer,
                               err));
    memcpy(parts, c->operands, sizeof(parts));
    /* the products must not read it as an addend */
    parts[XM_LINEAR_FACTOR].buffer = NULL;
    parts[XM_LINEAR_Y + 1] = up;
    products.operands = parts;
    XM_TRY(xm_linear_multiply(&products, err));
    if (l->after.slice)
        XM_TRY(copy_slice(c, &up, err));
    const struct xm_operand o[XM_GLU_N_OPERANDS] = {[XM_GLU_GATE] = parts[XM_LINEAR_Y],
                                                    [XM_GLU_UP] = up,
                                                    [XM_GLU_Y] = parts[XM_LINEAR_Y]};
    return xm_primitive_run(l->after.glu, o, c->run, err);
}

static enum xm_status
run_add(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_operand o[XM_ELTWISE_N_OPERANDS] = {
        [XM_ELTWISE_A] = c->operands[XM_LINEAR_Y],
        [XM_ELTWISE_B] = c->operands[XM_LINEAR_ADDEND],
        [XM_ELTWISE_Y] = c->operands[XM_LINEAR_Y]};
    XM_TRY(xm_linear_multiply(c, err));
    return xm_primitive_run(c->l->after.add, o, c->run, err);
}

enum xm_status
xm_linear_after_run(const struct xm_linear_call *c, struct xm_error *err)
{
    if (c->l->desc.is_glu && !xm_linear_gates(c->way->row))
        return run_glu(c, err);
    if (c->l->desc.has_addend && !xm_linear_adds(c->way->row))
        return run_add(c, err);
    return xm_linear_multiply(c, err);
}
