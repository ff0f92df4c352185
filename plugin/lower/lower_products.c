/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering of linear layers, matmuls and gathers: products with weights or of activations, and
 * lookups of rows.
 */
#include "plugin/lower/lower.h"

#include "primitives/gather/gather.h"
#include "primitives/linear/linear.h"

/* Adds the step of a MATMUL or LINEAR node with the weights desc->segment. Input 0 of both is x. */
static enum xm_status
lower_segments(struct xm_lower *l, struct xm_node *n, struct xm_linear_desc *desc,
               struct xm_step_operand *operands)
{
    struct xm_step_cost cost = {.result = XM_LINEAR_Y, .picked = 1 + XM_LINEAR_ADDEND};
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_LINEAR_X]));
    desc->src = xm_lower_element_of(l, &operands[XM_LINEAR_X]);
    desc->dst = xm_lower_element(&n->out[0]);
    desc->factor = xm_lower_factor_columns(l, n);
    for (uint32_t i = 0; i < desc->n; i++) {
        const struct xm_weight *w = &desc->segment[i].weight->host;
        if (xm_linear_supports(xm_engine_info(l->p->engine), w, desc->src, desc->dst))
            return XM_UNSUPPORTED;
        xm_lower_add_cost(&cost, w, 1, w->experts);
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        XM_TRY(xm_lower_result(l, n, i, desc->dst, &operands[XM_LINEAR_Y + i]));
    operands[XM_LINEAR_PREPARED].value =
        xm_lower_prepared_of(l, operands[XM_LINEAR_X].value,
                             desc->segment[0].weight->host.cols, &desc->prepared);
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_linear_create(l->p->engine, desc, &primitive, l->err));
    return xm_lower_finish(l, n, primitive, operands, &cost);
}

static enum xm_status
lower_weight_matmul(struct xm_lower *l, struct xm_node *n)
{
    struct xm_linear_desc desc = {.chunk = l->p->config.ubatch, .n = 1};
    struct xm_step_operand operands[XM_LINEAR_N_OPERANDS];
    xm_lower_absent(operands, XM_LINEAR_N_OPERANDS);
    XM_TRY(xm_lower_weight(l, xm_in(n, 1), &desc.segment[0].weight));
    return lower_segments(l, n, &desc, operands);
}

/* Returns the number of slices that input XM_LINEAR_FACTOR of n has along its second-last axis; 1:
 * it has the result's shape, without such an axis. */
static int64_t
slices_of(const struct xm_node *n)
{
    const struct xm_shape *s = &xm_in(n, XM_LINEAR_FACTOR)->type.shape;
    return s->rank == n->out[0].type.shape.rank + 1 ? s->dim[s->rank - 2].n : 1;
}

static enum xm_status
lower_linear(struct xm_lower *l, struct xm_node *n)
{
    enum xm_activation activation = (enum xm_activation)n->attr.linear.activation;
    struct xm_linear_desc desc = {.is_glu = n->attr.linear.glu,
                                  .activation = activation,
                                  .slices = (uint32_t)slices_of(n),
                                  .slice = (uint32_t)n->attr.linear.slice,
                                  .chunk = l->p->config.ubatch,
                                  .n = (n->n_in - XM_LINEAR_W) / XM_LINEAR_SEGMENT};
    struct xm_step_operand operands[XM_LINEAR_N_OPERANDS];
    xm_lower_absent(operands, XM_LINEAR_N_OPERANDS);
    for (uint32_t i = 0; i < desc.n; i++) {
        uint32_t w = XM_LINEAR_W + i * XM_LINEAR_SEGMENT;
        XM_TRY(xm_lower_weight(l, xm_in(n, w), &desc.segment[i].weight));
        XM_TRY(xm_lower_f32_buffer(l, xm_in(n, w + 1), &desc.segment[i].bias));
    }
    desc.has_addend = !desc.is_glu && !xm_is_none(xm_in(n, XM_LINEAR_ADDEND));
    XM_TRY(xm_lower_input_as(l, n, XM_LINEAR_ADDEND, xm_lower_element(&n->out[0]),
                             &operands[XM_LINEAR_ADDEND])); /* of a GLU: the factor */
    return lower_segments(l, n, &desc, operands);
}

static enum xm_status
lower_matmul(struct xm_lower *l, struct xm_node *n)
{
    const struct xm_value *w = xm_in(n, 1);
    if (w->node->op == XM_OP_WEIGHT)
        return n->attr.matmul.transpose_b && !n->attr.matmul.transpose_a &&
                       w->node->attr.weight.rank == 2
                   ? lower_weight_matmul(l, n)
                   : XM_UNSUPPORTED;
    struct xm_step_operand operands[XM_MATMUL_N_OPERANDS];
    if (xm_in(n, 0)->type.shape.rank < 2 || w->type.shape.rank < 2)
        return XM_UNSUPPORTED;
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_MATMUL_A]));
    XM_TRY(xm_lower_input(l, n, 1, &operands[XM_MATMUL_B]));
    if (!xm_lower_is_float(l, &operands[XM_MATMUL_A]) ||
        !xm_lower_is_float(l, &operands[XM_MATMUL_B]))
        return XM_UNSUPPORTED;
    struct xm_matmul_desc desc = {.transpose_a = n->attr.matmul.transpose_a,
                                  .transpose_b = n->attr.matmul.transpose_b,
                                  .a = xm_lower_element_of(l, &operands[XM_MATMUL_A]),
                                  .b = xm_lower_element_of(l, &operands[XM_MATMUL_B]),
                                  .c = xm_lower_element(&n->out[0])};
    XM_TRY(xm_lower_result(l, n, 0, desc.c, &operands[XM_MATMUL_C]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_matmul_create(l->p->engine, &desc, &primitive, l->err));
    const struct xm_step_cost cost = {.result = XM_MATMUL_C,
                                      .inner = desc.transpose_a ? 2 : 1};
    return xm_lower_finish(l, n, primitive, operands, &cost);
}

/* Returns the axis of a gather, counted from the first axis; -1: it is not a constant. */
static int64_t
gather_axis(const struct xm_node *n)
{
    int64_t axis;
    if (xm_value_const_ints(xm_in(n, 2), &axis, 1) != 1)
        return -1;
    return axis < 0 ? axis + (int64_t)xm_in(n, 0)->type.shape.rank : axis;
}

static enum xm_status
lower_embedding(struct xm_lower *l, struct xm_node *n, const struct xm_step_operand *ids)
{
    struct xm_embedding_desc desc = {.ids = xm_lower_element_of(l, ids)};
    XM_TRY(xm_lower_weight(l, xm_in(n, 0), &desc.weight));
    if (desc.weight->host.rank != 2)
        return XM_UNSUPPORTED;
    desc.dst = xm_lower_element(&n->out[0]);
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_embedding_create(l->p->engine, &desc, &primitive, l->err));
    struct xm_step_operand operands[XM_EMBEDDING_N_OPERANDS] = {[XM_EMBEDDING_IDS] =
                                                                    *ids};
    XM_TRY(xm_lower_result(l, n, 0, desc.dst, &operands[XM_EMBEDDING_Y]));
    const struct xm_weight *table = &desc.weight->host;
    const struct xm_step_cost cost = {.result = XM_EMBEDDING_Y,
                                      .row_bytes = xm_weight_bytes(table) / table->rows};
    return xm_lower_finish(l, n, primitive, operands, &cost);
}

static enum xm_status
lower_gather(struct xm_lower *l, struct xm_node *n)
{
    int64_t axis = gather_axis(n);
    struct xm_step_operand operands[XM_GATHER_N_OPERANDS];
    XM_TRY(xm_lower_input(l, n, 1, &operands[XM_GATHER_IDS]));
    enum xm_element ids = xm_lower_element_of(l, &operands[XM_GATHER_IDS]);
    if (axis < 0 || n->attr.gather.batch_dims != 0 || (ids != XM_I32 && ids != XM_I64))
        return XM_UNSUPPORTED;
    if (xm_in(n, 0)->node->op == XM_OP_WEIGHT && axis == 0 &&
        xm_in(n, 0)->type.shape.rank == 2)
        return lower_embedding(l, n, &operands[XM_GATHER_IDS]);
    XM_TRY(xm_lower_like_result(l, n, 0, &operands[XM_GATHER_X]));
    struct xm_gather_desc desc = {.axis = (uint32_t)axis,
                                  .element =
                                      xm_lower_element_of(l, &operands[XM_GATHER_X]),
                                  .ids = ids};
    XM_TRY(xm_lower_result(l, n, 0, desc.element, &operands[XM_GATHER_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_gather_create(l->p->engine, &desc, &primitive, l->err));
    const struct xm_step_cost cost = {.result = XM_GATHER_Y, .picked = 1 + XM_GATHER_X};
    return xm_lower_finish(l, n, primitive, operands, &cost);
}

static const char *
why_not_linear(const struct xm_lower_question *q)
{
    const struct xm_weight *first = xm_asked_weight(q->in[XM_LINEAR_W]);
    const char *why = NULL;
    for (uint32_t i = XM_LINEAR_W; i < q->n_in && !why; i += XM_LINEAR_SEGMENT) {
        const struct xm_weight *w = xm_asked_weight(q->in[i]);
        if (!first || !w)
            return "a matrix of the product is not a stored weight";
        why = xm_linear_supports(q->device, w, XM_F32, XM_F32);
        if (!why)
            why = xm_linear_cannot_join(first, w);
    }
    if (!why && q->attr && q->attr->linear.glu && q->n_in > XM_LINEAR_BIAS + 1)
        why = xm_linear_cannot_gate(
            first, xm_asked_weight(q->in[XM_LINEAR_W + XM_LINEAR_SEGMENT]));
    return why;
}

/* clang-format off */
const struct xm_lower_op xm_lower_product_ops[] = {
    { XM_OP_MATMUL, lower_matmul, NULL },
    { XM_OP_LINEAR, lower_linear, why_not_linear },
    { XM_OP_GATHER, lower_gather, NULL },
    { XM_OP_NONE, NULL, NULL }
};
/* clang-format on */
