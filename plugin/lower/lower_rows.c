/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering of the operations on rows between products: norms, chains, rope, gates.
 */
#include "plugin/lower/lower.h"

#include "primitives/eltwise/eltwise.h"
#include "primitives/norm/norm.h"
#include "primitives/norm/row_chain.h"
#include "primitives/rope/rope.h"

/* Returns the number of elements of a row of n's result 0; 0: it is not constant. */
static uint64_t
row_length(const struct xm_node *n)
{
    const struct xm_shape *s = &n->out[0].type.shape;
    return s->rank && xm_dim_is_const(s->dim[s->rank - 1])
               ? (uint64_t)s->dim[s->rank - 1].n
               : 0;
}

static enum xm_status
lower_rms_norm(struct xm_lower *l, struct xm_node *n)
{
    struct xm_rms_norm_desc desc = {.epsilon = n->attr.rms_norm.epsilon};
    struct xm_step_operand operands[XM_RMS_NORM_N_OPERANDS];
    xm_lower_absent(operands, XM_RMS_NORM_N_OPERANDS);
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 1), &desc.gamma));
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_RMS_NORM_X]));
    desc.src = xm_lower_element_of(l, &operands[XM_RMS_NORM_X]);
    desc.dst = xm_lower_element(&n->out[0]);
    XM_TRY(xm_lower_result(l, n, 0, desc.dst, &operands[XM_RMS_NORM_Y]));
    const uint64_t cols = row_length(n);
    struct xm_primitive *primitive = NULL;
    desc.prepared = xm_lower_form_wanted(l, &n->out[0], cols);
    XM_TRY(xm_rms_norm_create(l->p->engine, &desc, &primitive, l->err));
    if (xm_rms_norm_emits(primitive))
        XM_TRY(xm_lower_emit(l, primitive, &operands[XM_RMS_NORM_Y], &desc.prepared, cols,
                             &operands[XM_RMS_NORM_PREPARED]));
    return xm_lower_finish(l, n, primitive, operands, NULL);
}

/* Sets what the chain's steps read: rows are operands, constants are buffers of *desc. */
static enum xm_status
row_chain_operands(struct xm_lower *l, struct xm_node *n, struct xm_row_chain_desc *desc,
                   struct xm_step_operand *operands)
{
    const struct xm_row_chain *chain = &desc->chain;
    for (uint32_t i = 0; i < chain->n_x; i++) {
        struct xm_step_operand *x = &operands[XM_ROW_CHAIN_X + i];
        XM_TRY(xm_lower_input(l, n, i, x));
        desc->x[i] = xm_lower_element_of(l, x);
        if (!xm_lower_is_float(l, x))
            return XM_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < chain->n_c; i++) {
        const struct xm_value *v = xm_in(n, chain->n_x + i);
        XM_TRY(xm_lower_f32_buffer(l, v, &desc->constant[i]));
        desc->is_number[i] = xm_dim_is(v->type.shape.dim[0], 1);
    }
    return XM_OK;
}

static enum xm_status
lower_row_chain(struct xm_lower *l, struct xm_node *n)
{
    const struct xm_shape *shape = &n->out[0].type.shape;
    struct xm_dim width = shape->dim[shape->rank - 1];
    struct xm_row_chain_desc desc = {.n = 0};
    struct xm_step_operand operands[XM_ROW_CHAIN_N_OPERANDS];
    XM_TRY(xm_row_chain_parse(n->attr.row_chain.steps, &desc.chain, l->err));
    if (!xm_dim_is_const(width) || xm_row_chain_supports(&desc.chain, width.n))
        return XM_UNSUPPORTED;
    desc.n = (uint32_t)width.n;
    xm_lower_absent(operands, XM_ROW_CHAIN_N_OPERANDS);
    XM_TRY(row_chain_operands(l, n, &desc, operands));
    for (uint32_t i = 0; i < desc.chain.n_y; i++) {
        desc.y[i] = xm_lower_element(&n->out[i]);
        XM_TRY(xm_lower_result(l, n, i, desc.y[i], &operands[XM_ROW_CHAIN_Y + i]));
        desc.prepared[i] = xm_lower_form_wanted(l, &n->out[i], desc.n);
    }
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_row_chain_create(l->p->engine, &desc, &primitive, l->err));
    for (uint32_t i = 0; i < desc.chain.n_y; i++) {
        if (xm_row_chain_emits(primitive, i))
            XM_TRY(xm_lower_emit(l, primitive, &operands[XM_ROW_CHAIN_Y + i],
                                 &desc.prepared[i], desc.n,
                                 &operands[XM_ROW_CHAIN_PREPARED + i]));
    }
    return xm_lower_finish(l, n, primitive, operands, NULL);
}

static enum xm_status
lower_rope(struct xm_lower *l, struct xm_node *n)
{
    struct xm_step_operand operands[XM_ROPE_N_OPERANDS];
    XM_TRY(xm_lower_like_result(l, n, 0, &operands[XM_ROPE_X]));
    XM_TRY(xm_lower_input_as(l, n, 1, XM_F32, &operands[XM_ROPE_COS]));
    XM_TRY(xm_lower_input_as(l, n, 2, XM_F32, &operands[XM_ROPE_SIN]));
    struct xm_rope_desc desc = {.element = xm_lower_element_of(l, &operands[XM_ROPE_X])};
    XM_TRY(xm_lower_result(l, n, 0, desc.element, &operands[XM_ROPE_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_rope_create(l->p->engine, &desc, &primitive, l->err));
    return xm_lower_finish(l, n, primitive, operands, NULL);
}

static enum xm_status
lower_rope_tables(struct xm_lower *l, struct xm_node *n)
{
    struct xm_step_operand operands[XM_ROPE_TABLES_N_OPERANDS];
    struct xm_rope_tables_desc desc = {.r = (uint32_t)xm_in(n, 1)->type.shape.dim[0].n,
                                       .scale = n->attr.rope_tables.scale,
                                       .twice = n->attr.rope_tables.twice};
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_ROPE_TABLES_POSITIONS]));
    desc.positions = xm_lower_element_of(l, &operands[XM_ROPE_TABLES_POSITIONS]);
    if (xm_rope_tables_supports(&desc))
        return XM_UNSUPPORTED;
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 1), &desc.frequencies));
    XM_TRY(xm_lower_result(l, n, 0, XM_F32, &operands[XM_ROPE_TABLES_COS]));
    XM_TRY(xm_lower_result(l, n, 1, XM_F32, &operands[XM_ROPE_TABLES_SIN]));
    XM_TRY(xm_rope_tables_create(l->p->engine, &desc, &primitive, l->err));
    return xm_lower_finish(l, n, primitive, operands, NULL);
}

static enum xm_status
lower_glu(struct xm_lower *l, struct xm_node *n)
{
    if (!xm_shape_eq(&xm_in(n, 0)->type.shape, &xm_in(n, 1)->type.shape))
        return XM_UNSUPPORTED;
    enum xm_element e = xm_lower_element(&n->out[0]);
    struct xm_glu_desc desc = {.activation = (enum xm_activation)n->attr.glu.activation,
                               .element = e};
    struct xm_step_operand operands[XM_GLU_N_OPERANDS];
    XM_TRY(xm_lower_input_as(l, n, 0, e, &operands[XM_GLU_GATE]));
    XM_TRY(xm_lower_input_as(l, n, 1, e, &operands[XM_GLU_UP]));
    XM_TRY(xm_lower_result(l, n, 0, e, &operands[XM_GLU_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_glu_create(l->p->engine, &desc, &primitive, l->err));
    return xm_lower_finish(l, n, primitive, operands, NULL);
}

static const char *
why_not_rms_norm(const struct xm_lower_question *q)
{
    const struct xm_rms_norm_desc desc = {.src = xm_asked_type(q->in[0]), .dst = XM_F32};
    return xm_rms_norm_supports(&desc);
}

static const char *
why_not_row_chain(const struct xm_lower_question *q)
{
    struct xm_row_chain chain;
    if (xm_row_chain_parse(q->attr->row_chain.steps, &chain, NULL) != XM_OK)
        return "its steps are not a valid row chain";
    return xm_row_chain_supports(&chain, xm_asked_last_size(q->in[0]));
}

static const char *
why_not_rope(const struct xm_lower_question *q)
{
    const struct xm_rope_desc desc = {.element = xm_asked_type(q->in[0])};
    return xm_rope_supports(&desc);
}

static const char *
why_not_rope_tables(const struct xm_lower_question *q)
{
    const struct xm_rope_tables_desc desc = {.positions = xm_asked_type(q->in[0]),
                                             .r = xm_asked_last_size(q->in[1])};
    return xm_rope_tables_supports(&desc);
}

static const char *
why_not_glu(const struct xm_lower_question *q)
{
    const struct xm_glu_desc desc = {.activation =
                                         (enum xm_activation)q->attr->glu.activation,
                                     .element = xm_asked_type(q->in[0])};
    return xm_glu_supports(&desc);
}

/* clang-format off */
const struct xm_lower_op xm_lower_row_ops[] = {
    { XM_OP_RMS_NORM,    lower_rms_norm,    why_not_rms_norm },
    { XM_OP_ROW_CHAIN,   lower_row_chain,   why_not_row_chain },
    { XM_OP_ROPE_TABLES, lower_rope_tables, why_not_rope_tables },
    { XM_OP_ROPE,        lower_rope,        why_not_rope },
    { XM_OP_GLU,         lower_glu,         why_not_glu },
    { XM_OP_NONE, NULL, NULL }
};
/* clang-format on */
