/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering of light operations: elementwise, layout, reductions. Forms without a kernel
 * return XM_UNSUPPORTED and run on the host.
 */
#include <math.h>

#include "plugin/lower/lower.h"
#include "primitives/eltwise/eltwise.h"
#include "primitives/reduce/reduce.h"

/* ---- elementwise ------------------------------------------------------------------- */

/* clang-format off */
static const struct { enum xm_op op; enum xm_eltwise_fn fn; } functions[] = {
    { XM_OP_ADD, XM_FN_ADD },                     { XM_OP_SUBTRACT, XM_FN_SUBTRACT },
    { XM_OP_MULTIPLY, XM_FN_MULTIPLY },           { XM_OP_DIVIDE, XM_FN_DIVIDE },
    { XM_OP_POWER, XM_FN_POWER },                 { XM_OP_MINIMUM, XM_FN_MINIMUM },
    { XM_OP_MAXIMUM, XM_FN_MAXIMUM },             { XM_OP_MOD, XM_FN_MOD },
    { XM_OP_FLOOR_MOD, XM_FN_FLOOR_MOD },         { XM_OP_SQUARED_DIFFERENCE, XM_FN_SQUARED_DIFFERENCE },
    { XM_OP_EQUAL, XM_FN_EQUAL },                 { XM_OP_NOT_EQUAL, XM_FN_NOT_EQUAL },
    { XM_OP_LESS, XM_FN_LESS },                   { XM_OP_LESS_EQUAL, XM_FN_LESS_EQUAL },
    { XM_OP_GREATER, XM_FN_GREATER },             { XM_OP_GREATER_EQUAL, XM_FN_GREATER_EQUAL },
    { XM_OP_LOGICAL_AND, XM_FN_LOGICAL_AND },     { XM_OP_LOGICAL_OR, XM_FN_LOGICAL_OR },
    { XM_OP_LOGICAL_XOR, XM_FN_LOGICAL_XOR },     { XM_OP_LOGICAL_NOT, XM_FN_LOGICAL_NOT },
    { XM_OP_BITWISE_AND, XM_FN_BITWISE_AND },     { XM_OP_BITWISE_OR, XM_FN_BITWISE_OR },
    { XM_OP_BITWISE_XOR, XM_FN_BITWISE_XOR },     { XM_OP_BITWISE_NOT, XM_FN_BITWISE_NOT },
    { XM_OP_SQRT, XM_FN_SQRT },                   { XM_OP_EXP, XM_FN_EXP },
    { XM_OP_LOG, XM_FN_LOG },                     { XM_OP_ABS, XM_FN_ABS },
    { XM_OP_NEGATIVE, XM_FN_NEGATIVE },           { XM_OP_TANH, XM_FN_TANH },
    { XM_OP_SIGMOID, XM_FN_SIGMOID },             { XM_OP_SIN, XM_FN_SIN },
    { XM_OP_COS, XM_FN_COS },                     { XM_OP_RELU, XM_FN_RELU },
    { XM_OP_ERF, XM_FN_ERF },                     { XM_OP_FLOOR, XM_FN_FLOOR },
    { XM_OP_CEILING, XM_FN_CEILING },             { XM_OP_SOFTPLUS, XM_FN_SOFTPLUS },
    { XM_OP_SWISH, XM_FN_SWISH },                 { XM_OP_CLAMP, XM_FN_CLAMP },
    { XM_OP_ASIN, XM_FN_ASIN },                   { XM_OP_ACOS, XM_FN_ACOS },
    { XM_OP_ATAN, XM_FN_ATAN },                   { XM_OP_ASINH, XM_FN_ASINH },
    { XM_OP_ACOSH, XM_FN_ACOSH },                 { XM_OP_ATANH, XM_FN_ATANH },
    { XM_OP_TAN, XM_FN_TAN },                     { XM_OP_SINH, XM_FN_SINH },
    { XM_OP_COSH, XM_FN_COSH },                   { XM_OP_SIGN, XM_FN_SIGN },
    { XM_OP_ELU, XM_FN_ELU },                     { XM_OP_HSIGMOID, XM_FN_HSIGMOID },
    { XM_OP_HSWISH, XM_FN_HSWISH },               { XM_OP_MISH, XM_FN_MISH },
    { XM_OP_SOFTSIGN, XM_FN_SOFTSIGN },           { XM_OP_ROUND_BF16, XM_FN_ROUND_BF16 },
    { XM_OP_CONVERT, XM_FN_CONVERT },             { XM_OP_SELECT, XM_FN_SELECT },
};
/* clang-format on */

static enum xm_eltwise_fn
function_of(const struct xm_node *n)
{
    if (n->op == XM_OP_GELU)
        return n->attr.gelu.approximation == XM_GELU_TANH ? XM_FN_GELU_TANH
                                                          : XM_FN_GELU_ERF;
    if (n->op == XM_OP_ROUND)
        return n->attr.round.mode == XM_ROUND_HALF_TO_EVEN ? XM_FN_ROUND_EVEN
                                                           : XM_FN_ROUND_AWAY;
    if (n->op == XM_OP_BITWISE_NOT && n->out[0].type.element == XM_BOOL)
        return XM_FN_LOGICAL_NOT; /* as integers, ~1 would not be 0 (false) */
    for (size_t i = 0; i < XM_ARRAY_LEN(functions); i++) {
        if (functions[i].op == n->op)
            return functions[i].fn;
    }
    return XM_FN_COUNT;
}

/* Whether a bound of a clamp of integers keeps its value as f32, the type of a kernel's parameter.
 * Bounds from 2^63 on are no limits in either type. */
static bool
is_exact_bound(double bound)
{
    return (double)(float)bound == bound || fabs(bound) >= 0x1p63;
}

enum xm_status
xm_lower_eltwise(struct xm_lower *l, struct xm_node *n)
{
    struct xm_eltwise_desc desc = {.fn = function_of(n), .p0 = 1.0f};
    struct xm_step_operand operands[XM_ELTWISE_N_OPERANDS];
    uint32_t n_in = n->n_in;
    xm_lower_absent(operands, XM_ELTWISE_N_OPERANDS);
    if (n->op == XM_OP_CLAMP) {
        if (!xm_element_is_float(n->out[0].type.element) &&
            !(is_exact_bound(n->attr.clamp.min) && is_exact_bound(n->attr.clamp.max)))
            return XM_UNSUPPORTED;
        desc.p0 = (float)n->attr.clamp.min;
        desc.p1 = (float)n->attr.clamp.max;
    }
    if (n->op == XM_OP_ELU)
        desc.p0 = n->attr.elu.alpha;
    if (n->op == XM_OP_SWISH && n->n_in == 2) {
        if (!xm_value_is_scalar_const(xm_in(n, 1), &desc.p0))
            return XM_UNSUPPORTED;
        n_in = 1;
    }
    for (uint32_t i = 0; i < n_in; i++)
        XM_TRY(xm_lower_input(l, n, i, &operands[i]));
    desc.a = xm_lower_element_of(l, &operands[0]);
    desc.b = xm_lower_element_of(l, &operands[1]);
    desc.c = xm_lower_element_of(l, &operands[2]);
    desc.y = xm_lower_element(&n->out[0]);
    if (xm_eltwise_supports(&desc))
        return XM_UNSUPPORTED;
    XM_TRY(xm_lower_result(l, n, 0, desc.y, &operands[XM_ELTWISE_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_eltwise_create(l->p->engine, &desc, &primitive, l->err));
    return xm_lower_step(l, n, XM_STEP_PRIMITIVE, primitive, operands, NULL);
}

/* ---- layout ------------------------------------------------------------------------ */

static enum xm_status
lower_alias(struct xm_lower *l, struct xm_node *n)
{
    struct xm_step_operand of;
    XM_TRY(xm_lower_like_result(l, n, 0, &of));
    return xm_lower_alias(l, n, 0, of.value);
}

static enum xm_status
add_copy(struct xm_lower *l, struct xm_node *n, enum xm_copy_kind kind,
         struct xm_step_operand *operands, uint32_t n_in, uint32_t n_out,
         const int64_t *ints, uint32_t n_ints)
{
    struct xm_copy_desc desc = {.element = xm_lower_element_of(l, &operands[0])};
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_copy_create(l->p->engine, &desc, &primitive, l->err));
    struct xm_step *step = NULL;
    XM_TRY(
        xm_lower_list_step(l, n, XM_STEP_COPY, primitive, operands, n_in, n_out, &step));
    step->copy = kind;
    for (uint32_t i = 0; i < n_ints; i++)
        step->ints[i] = ints[i];
    return XM_OK;
}

static enum xm_status
unary_copy(struct xm_lower *l, struct xm_node *n, enum xm_copy_kind kind,
           const int64_t *ints, uint32_t n_ints)
{
    struct xm_step_operand operands[2];
    XM_TRY(xm_lower_like_result(l, n, 0, &operands[0]));
    XM_TRY(xm_lower_result(l, n, 0, xm_lower_element_of(l, &operands[0]), &operands[1]));
    return add_copy(l, n, kind, operands, 1, 1, ints, n_ints);
}

static enum xm_status
lower_transpose(struct xm_lower *l, struct xm_node *n)
{
    int64_t order[XM_MAX_RANK];
    int rank = xm_value_const_ints(xm_in(n, 1), order, XM_MAX_RANK);
    int value_rank = (int)n->out[0].type.shape.rank;
    if (rank != value_rank && rank != 0)
        return XM_UNSUPPORTED;
    for (int i = 0; rank == 0 && i < value_rank; i++)
        order[i] = value_rank - 1 - i; /* an absent order reverses */
    return unary_copy(l, n, XM_COPY_TRANSPOSE, order, (uint32_t)value_rank);
}

static enum xm_status
lower_slice(struct xm_lower *l, struct xm_node *n)
{
    int64_t start[XM_MAX_RANK], step[XM_MAX_RANK], axes[XM_MAX_RANK];
    int64_t ints[2 * XM_MAX_RANK];
    uint32_t rank = n->out[0].type.shape.rank;
    int count = xm_value_const_ints(xm_in(n, 1), start, XM_MAX_RANK);
    if (count < 0 || xm_value_const_ints(xm_in(n, 3), step, XM_MAX_RANK) != count)
        return XM_UNSUPPORTED;
    for (int i = 0; i < count; i++)
        axes[i] = i;
    if (n->n_in == 5 && xm_value_const_ints(xm_in(n, 4), axes, XM_MAX_RANK) != count)
        return XM_UNSUPPORTED;
    for (uint32_t i = 0; i < rank; i++) {
        ints[i] = 0;
        ints[rank + i] = 1;
    }
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)rank : axes[i];
        if (axis < 0 || axis >= (int64_t)rank)
            return XM_UNSUPPORTED;
        ints[axis] = start[i];
        ints[rank + axis] = step[i];
    }
    return unary_copy(l, n, XM_COPY_SLICE, ints, 2 * rank);
}

static enum xm_status
lower_concat(struct xm_lower *l, struct xm_node *n)
{
    int64_t axis = n->attr.axis.axis;
    axis += axis < 0 ? (int64_t)n->out[0].type.shape.rank : 0;
    struct xm_step_operand *operands = xm_calloc(n->n_in + 1, sizeof(*operands));
    if (!operands)
        return xm_fail(l->err, XM_NO_MEMORY, "out of memory while lowering");
    enum xm_element e = xm_lower_element(&n->out[0]);
    enum xm_status s = XM_OK;
    for (uint32_t i = 0; i < n->n_in && s == XM_OK; i++)
        s = xm_lower_input_as(l, n, i, e, &operands[i]);
    if (s == XM_OK)
        s = xm_lower_result(l, n, 0, e, &operands[n->n_in]);
    if (s == XM_OK)
        s = add_copy(l, n, XM_COPY_CONCAT, operands, n->n_in, 1, &axis, 1);
    xm_free(operands);
    return s;
}

static enum xm_status
lower_split(struct xm_lower *l, struct xm_node *n)
{
    int64_t axis;
    if (xm_value_const_ints(xm_in(n, 1), &axis, 1) != 1)
        return XM_UNSUPPORTED;
    axis += axis < 0 ? (int64_t)xm_in(n, 0)->type.shape.rank : 0;
    struct xm_step_operand *operands = xm_calloc(n->n_out + 1, sizeof(*operands));
    if (!operands)
        return xm_fail(l->err, XM_NO_MEMORY, "out of memory while lowering");
    enum xm_status s = xm_lower_like_result(l, n, 0, &operands[0]);
    for (uint32_t i = 0; i < n->n_out && s == XM_OK; i++)
        s = xm_lower_result(l, n, i, xm_lower_element_of(l, &operands[0]),
                            &operands[1 + i]);
    if (s == XM_OK)
        s = add_copy(l, n, XM_COPY_SPLIT, operands, 1, n->n_out, &axis, 1);
    xm_free(operands);
    return s;
}

static enum xm_status
lower_broadcast(struct xm_lower *l, struct xm_node *n)
{
    if (n->op == XM_OP_BROADCAST && n->attr.broadcast.mode == XM_BROADCAST_EXPLICIT)
        return XM_UNSUPPORTED;
    if (n->op == XM_OP_TILE && 2 * n->out[0].type.shape.rank > XM_OPERAND_RANK)
        return XM_UNSUPPORTED; /* the copy splits each axis into repetition and index */
    return unary_copy(l, n, n->op == XM_OP_TILE ? XM_COPY_TILE : XM_COPY_BROADCAST, NULL,
                      0);
}

/* ---- reductions -------------------------------------------------------------------- */

static enum xm_status
lower_reduce(struct xm_lower *l, struct xm_node *n)
{
    int64_t axes[XM_MAX_RANK];
    const struct xm_shape *shape = &xm_in(n, 0)->type.shape;
    int count = xm_value_const_ints(xm_in(n, 1), axes, XM_MAX_RANK);
    bool reduced[XM_MAX_RANK] = {false};
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)shape->rank : axes[i];
        if (axis < 0 || axis >= (int64_t)shape->rank)
            return XM_UNSUPPORTED;
        reduced[axis] = true;
    }
    uint32_t first = 0, n_axes = 0;
    while (first < shape->rank && !reduced[first])
        first++;
    while (first + n_axes < shape->rank && reduced[first + n_axes])
        n_axes++;
    if (count <= 0 || (int)n_axes != count)
        return XM_UNSUPPORTED; /* the axes are not adjacent, or not constant */
    struct xm_step_operand operands[XM_REDUCE_N_OPERANDS];
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_REDUCE_X]));
    enum xm_element e = xm_lower_element(&n->out[0]);
    struct xm_reduce_desc desc = {
        .fn = (enum xm_reduce_fn)(n->op == XM_OP_REDUCE_SUM    ? XM_REDUCE_FN_SUM
                                  : n->op == XM_OP_REDUCE_MEAN ? XM_REDUCE_FN_MEAN
                                  : n->op == XM_OP_REDUCE_MAX  ? XM_REDUCE_FN_MAX
                                  : n->op == XM_OP_REDUCE_MIN  ? XM_REDUCE_FN_MIN
                                                               : XM_REDUCE_FN_PROD),
        .first_axis = first,
        .n_axes = n_axes,
        .src = xm_lower_element_of(l, &operands[XM_REDUCE_X]),
        .dst = e};
    XM_TRY(xm_lower_result(l, n, 0, e, &operands[XM_REDUCE_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_reduce_create(l->p->engine, &desc, &primitive, l->err));
    return xm_lower_step(l, n, XM_STEP_PRIMITIVE, primitive, operands, NULL);
}

static enum xm_status
lower_softmax(struct xm_lower *l, struct xm_node *n)
{
    int64_t axis = n->attr.axis.axis;
    axis += axis < 0 ? (int64_t)n->out[0].type.shape.rank : 0;
    struct xm_step_operand operands[XM_SOFTMAX_N_OPERANDS];
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_SOFTMAX_X]));
    enum xm_element e = xm_lower_element(&n->out[0]);
    struct xm_softmax_desc desc = {.axis = (uint32_t)axis,
                                   .src = xm_lower_element_of(l, &operands[XM_SOFTMAX_X]),
                                   .dst = e};
    XM_TRY(xm_lower_result(l, n, 0, e, &operands[XM_SOFTMAX_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_softmax_create(l->p->engine, &desc, &primitive, l->err));
    return xm_lower_step(l, n, XM_STEP_PRIMITIVE, primitive, operands, NULL);
}

static enum xm_status
lower_topk(struct xm_lower *l, struct xm_node *n)
{
    int64_t axis = n->attr.topk.axis;
    int64_t rank = n->out[0].type.shape.rank;
    if ((axis < 0 ? axis + rank : axis) != rank - 1 || n->attr.topk.sort == XM_SORT_INDEX)
        return XM_UNSUPPORTED;
    struct xm_step_operand operands[XM_TOPK_N_OPERANDS];
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_TOPK_X]));
    enum xm_element e = xm_lower_element_of(l, &operands[XM_TOPK_X]);
    struct xm_topk_desc desc = {.largest = !n->attr.topk.smallest,
                                .src = e,
                                .values = xm_lower_element(&n->out[0]),
                                .ids = n->out[1].type.element};
    if (!xm_element_is_float(e))
        return XM_UNSUPPORTED;
    XM_TRY(xm_lower_result(l, n, 0, desc.values, &operands[XM_TOPK_VALUES]));
    XM_TRY(xm_lower_result(l, n, 1, desc.ids, &operands[XM_TOPK_IDS]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_topk_create(l->p->engine, &desc, &primitive, l->err));
    return xm_lower_step(l, n, XM_STEP_PRIMITIVE, primitive, operands, NULL);
}

/* ---- exchanges with other ranks ------------------------------------------------------ */

static enum xm_status
lower_collective(struct xm_lower *l, struct xm_node *n)
{
    struct xm_step_operand operands[2];
    XM_TRY(xm_lower_input(l, n, 0, &operands[0]));
    XM_TRY(xm_lower_result(l, n, 0, xm_lower_element_of(l, &operands[0]), &operands[1]));
    return xm_lower_list_step(l, n, XM_STEP_COLLECTIVE, NULL, operands, 1, 1, NULL);
}

/* The result of a send is a number that no node reads. */
static enum xm_status
lower_send(struct xm_lower *l, struct xm_node *n)
{
    struct xm_step_operand operands[2];
    const enum xm_element e = xm_lower_element(xm_in(n, 0)); /* as in lower_receive */
    XM_TRY(xm_element_is_float(e) ? xm_lower_input_as(l, n, 0, e, &operands[0])
                                  : xm_lower_input(l, n, 0, &operands[0]));
    XM_TRY(xm_lower_result(l, n, 0, XM_F32, &operands[1]));
    return xm_lower_list_step(l, n, XM_STEP_COLLECTIVE, NULL, operands, 1, 1, NULL);
}

/* The operand of a receive, the dimensions, gives the result's shape in the graph: the step does
 * not read it. */
static enum xm_status
lower_receive(struct xm_lower *l, struct xm_node *n)
{
    struct xm_step_operand y;
    XM_TRY(xm_lower_result(l, n, 0, xm_lower_element(&n->out[0]), &y));
    return xm_lower_list_step(l, n, XM_STEP_COLLECTIVE, NULL, &y, 0, 1, NULL);
}

/* clang-format off */
const struct xm_lower_op xm_lower_light_ops[] = {
    { XM_OP_ALL_REDUCE,      lower_collective },
    { XM_OP_ALL_GATHER,      lower_collective },
    { XM_OP_SEND,            lower_send },
    { XM_OP_RECEIVE,         lower_receive },
    { XM_OP_RESHAPE,         lower_alias },
    { XM_OP_SQUEEZE,         lower_alias },
    { XM_OP_UNSQUEEZE,       lower_alias },
    { XM_OP_TRANSPOSE,       lower_transpose },
    { XM_OP_SLICE,           lower_slice },
    { XM_OP_CONCAT,          lower_concat },
    { XM_OP_SPLIT,           lower_split },
    { XM_OP_VARIADIC_SPLIT,  lower_split },
    { XM_OP_BROADCAST,       lower_broadcast },
    { XM_OP_TILE,            lower_broadcast },
    { XM_OP_REDUCE_SUM,      lower_reduce },
    { XM_OP_REDUCE_MEAN,     lower_reduce },
    { XM_OP_REDUCE_MAX,      lower_reduce },
    { XM_OP_REDUCE_MIN,      lower_reduce },
    { XM_OP_REDUCE_PROD,     lower_reduce },
    { XM_OP_SOFTMAX,         lower_softmax },
    { XM_OP_TOPK,            lower_topk },
    { XM_OP_NONE, NULL }
};
/* clang-format on */
