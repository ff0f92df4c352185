/* SPDX-License-Identifier: Apache-2.0
 *
 * References of the elementwise ops, with numpy broadcasting.
 *
 * Floats go through one row function per op; integers, which are few, through one switch
 * per element, in int64, and then wrap at the width of their type.
 */
#include <inttypes.h>
#include <math.h>

#include "transformations/graph/evaluate_ops.h"
#include "transformations/graph/shape.h"

/* ---- two operands ------------------------------------------------------------------ */

struct row {
    const float *a, *b;
    int64_t step_a, step_b, n;
    float *out;
};

#define ROW(name, expr)                                                                  \
    static void row_##name(const struct row *r)                                          \
    {                                                                                    \
        for (int64_t i = 0; i < r->n; i++) {                                             \
            float a = r->a[i * r->step_a], b = r->b[i * r->step_b];                      \
            r->out[i] = expr;                                                            \
        }                                                                                \
    }
ROW(add, a + b)
ROW(subtract, a - b)
ROW(multiply, a *b)
ROW(divide, a / b)
ROW(power, powf(a, b))
ROW(minimum, a < b ? a : b)
ROW(maximum, a > b ? a : b)
ROW(mod, fmodf(a, b))
ROW(floor_mod, a - b * floorf(a / b))
ROW(squared_difference, (a - b) * (a - b))
#undef ROW

static void (*const rows[XM_OP_COUNT])(const struct row *r) = {
    [XM_OP_ADD] = row_add,
    [XM_OP_SUBTRACT] = row_subtract,
    [XM_OP_MULTIPLY] = row_multiply,
    [XM_OP_DIVIDE] = row_divide,
    [XM_OP_POWER] = row_power,
    [XM_OP_MINIMUM] = row_minimum,
    [XM_OP_MAXIMUM] = row_maximum,
    [XM_OP_MOD] = row_mod,
    [XM_OP_FLOOR_MOD] = row_floor_mod,
    [XM_OP_SQUARED_DIFFERENCE] = row_squared_difference,
};

static enum xm_status
binary_floats(struct xm_eval_call *c, struct xm_walk *w)
{
    float *out = c->out[0]->f;
    if (!rows[c->node->op])
        return xm_fail(c->err, XM_UNSUPPORTED, "it is not defined on floats");
    while (xm_walk_row(w)) {
        struct row r = {c->in[0]->f + w->at[0],
                        c->in[1]->f + w->at[1],
                        w->step[0],
                        w->step[1],
                        w->inner,
                        out};
        rows[c->node->op](&r);
        out += w->inner;
    }
    return XM_OK;
}

/* Floats outside int64 saturate, NaN is 0. */
static int64_t
int_of(double v)
{
    if (!(v > -9.2e18))
        return v != v ? 0 : INT64_MIN;
    return v >= 9.2e18 ? INT64_MAX : (int64_t)v;
}

/* a / b toward zero or down, without the overflow of INT64_MIN / -1; b is not 0. */
static int64_t
divide_ints(int64_t a, int64_t b, bool down)
{
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    return a / b - (down && a % b != 0 && (a < 0) != (b < 0));
}

static int64_t
mod_ints(int64_t a, int64_t b, bool down)
{
    return (int64_t)((uint64_t)a - (uint64_t)b * (uint64_t)divide_ints(a, b, down));
}

bool
xm_int_divides(enum xm_op op)
{
    return op == XM_OP_DIVIDE || op == XM_OP_MOD || op == XM_OP_FLOOR_MOD;
}

int64_t
xm_int_binary(enum xm_op op, const union xm_attr *attr, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (op) {
    case XM_OP_ADD:
        return (int64_t)(ua + ub);
    case XM_OP_SUBTRACT:
        return (int64_t)(ua - ub);
    case XM_OP_MULTIPLY:
        return (int64_t)(ua * ub);
    case XM_OP_DIVIDE:
        return divide_ints(a, b, attr->divide.python);
    case XM_OP_POWER:
        return int_of(pow((double)a, (double)b));
    case XM_OP_MINIMUM:
        return a < b ? a : b;
    case XM_OP_MAXIMUM:
        return a > b ? a : b;
    case XM_OP_MOD:
        return mod_ints(a, b, false);
    case XM_OP_FLOOR_MOD:
        return mod_ints(a, b, true);
    case XM_OP_SQUARED_DIFFERENCE:
        return (int64_t)((ua - ub) * (ua - ub));
    case XM_OP_BITWISE_AND:
        return a & b;
    case XM_OP_BITWISE_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static enum xm_status
binary_ints(struct xm_eval_call *c, struct xm_walk *w)
{
    const struct xm_node *n = c->node;
    int64_t *out = c->out[0]->i;
    while (xm_walk_row(w)) {
        for (int64_t i = 0; i < w->inner; i++) {
            int64_t a = c->in[0]->i[xm_walk_at(w, 0, i)];
            int64_t b = c->in[1]->i[xm_walk_at(w, 1, i)];
            if (b == 0 && xm_int_divides(n->op))
                return xm_fail(c->err, XM_INVALID, "an integer is divided by 0");
            *out++ = xm_int_binary(n->op, &n->attr, a, b);
        }
    }
    xm_tensor_wrap(c->out[0]);
    return XM_OK;
}

enum xm_status
xm_eval_binary(struct xm_eval_call *c)
{
    struct xm_walk w;
    XM_TRY(xm_eval_operands(c, "ss"));
    xm_walk_operands(&w, c, 2);
    return c->out[0]->f ? binary_floats(c, &w) : binary_ints(c, &w);
}

bool
xm_int_compare(enum xm_op op, int order)
{
    switch (op) {
    case XM_OP_EQUAL:
        return order == 0;
    case XM_OP_NOT_EQUAL:
        return order != 0;
    case XM_OP_LESS:
        return order == -1;
    case XM_OP_LESS_EQUAL:
        return order == -1 || order == 0;
    case XM_OP_GREATER:
        return order == 1;
    default:
        return order == 1 || order == 0;
    }
}

static int
order_at(const struct xm_tensor *ta, int64_t at_a, const struct xm_tensor *tb,
         int64_t at_b)
{
    if (ta->i)
        return (ta->i[at_a] > tb->i[at_b]) - (ta->i[at_a] < tb->i[at_b]);
    float a = ta->f[at_a], b = tb->f[at_b];
    return isnan(a) || isnan(b) ? 2 : (a > b) - (a < b);
}

enum xm_status
xm_eval_compare(struct xm_eval_call *c)
{
    struct xm_walk w;
    XM_TRY(xm_eval_operands(c, "aa"));
    xm_walk_operands(&w, c, 2);
    int64_t *out = c->out[0]->i;
    while (xm_walk_row(&w)) {
        for (int64_t i = 0; i < w.inner; i++)
            *out++ =
                xm_int_compare(c->node->op, order_at(c->in[0], xm_walk_at(&w, 0, i),
                                                     c->in[1], xm_walk_at(&w, 1, i)));
    }
    return XM_OK;
}

bool
xm_int_is_logical(enum xm_op op)
{
    return op == XM_OP_LOGICAL_AND || op == XM_OP_LOGICAL_OR || op == XM_OP_LOGICAL_XOR;
}

bool
xm_int_logical(enum xm_op op, bool a, bool b)
{
    return op == XM_OP_LOGICAL_AND ? a && b : op == XM_OP_LOGICAL_OR ? a || b : a != b;
}

enum xm_status
xm_eval_logical(struct xm_eval_call *c)
{
    struct xm_walk w;
    XM_TRY(xm_eval_operands(c, "ii"));
    xm_walk_operands(&w, c, 2);
    int64_t *out = c->out[0]->i;
    while (xm_walk_row(&w)) {
        for (int64_t i = 0; i < w.inner; i++) {
            bool a = c->in[0]->i[xm_walk_at(&w, 0, i)] != 0;
            bool b = c->in[1]->i[xm_walk_at(&w, 1, i)] != 0;
            *out++ = xm_int_logical(c->node->op, a, b);
        }
    }
    return XM_OK;
}

/* ---- one operand ------------------------------------------------------------------- */

static float
negative(float x)
{
    return -x;
}

static float
relu(float x)
{
    return x > 0.0f ? x : 0.0f;
}

/* ln(1 + e^x) without overflow: max(x, 0) + ln(1 + e^-|x|). */
static float
softplus(float x)
{
    return relu(x) + log1pf(expf(-fabsf(x)));
}

static float (*const unaries[XM_OP_COUNT])(float) = {
    [XM_OP_SQRT] = sqrtf,
    [XM_OP_EXP] = expf,
    [XM_OP_LOG] = logf,
    [XM_OP_ABS] = fabsf,
    [XM_OP_NEGATIVE] = negative,
    [XM_OP_TANH] = tanhf,
    [XM_OP_SIGMOID] = xm_ref_sigmoid,
    [XM_OP_SIN] = sinf,
    [XM_OP_COS] = cosf,
    [XM_OP_RELU] = relu,
    [XM_OP_ERF] = erff,
    [XM_OP_FLOOR] = floorf,
    [XM_OP_CEILING] = ceilf,
    [XM_OP_SOFTPLUS] = softplus,
};

static enum xm_status
unary_int(const struct xm_eval_call *c, int64_t x, int64_t *out)
{
    switch (c->node->op) {
    case XM_OP_ABS:
        *out = x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
        return XM_OK;
    case XM_OP_NEGATIVE:
        *out = (int64_t)(0 - (uint64_t)x);
        return XM_OK;
    case XM_OP_RELU:
        *out = x > 0 ? x : 0;
        return XM_OK;
    case XM_OP_FLOOR:
    case XM_OP_CEILING:
        *out = x;
        return XM_OK;
    case XM_OP_SQRT:
        *out = int_of(sqrt((double)x));
        return XM_OK;
    default:
        return xm_fail(c->err, XM_UNSUPPORTED, "it is not defined on integers");
    }
}

enum xm_status
xm_eval_unary(struct xm_eval_call *c)
{
    XM_TRY(xm_eval_operands(c, "s"));
    struct xm_tensor *out = c->out[0];
    for (uint64_t i = 0; out->f && i < out->n; i++)
        out->f[i] = unaries[c->node->op](c->in[0]->f[i]);
    for (uint64_t i = 0; out->i && i < out->n; i++)
        XM_TRY(unary_int(c, c->in[0]->i[i], &out->i[i]));
    xm_tensor_wrap(out);
    return XM_OK;
}

enum xm_status
xm_eval_swish(struct xm_eval_call *c)
{
    XM_TRY(xm_eval_operands(c, "fF"));
    float beta = 1.0f;
    if (c->node->n_in > 1 && c->in[1]) {
        if (c->in[1]->n != 1)
            return xm_fail(c->err, XM_INVALID,
                           "its beta must be one element, found %" PRIu64, c->in[1]->n);
        beta = c->in[1]->f[0];
    }
    for (uint64_t i = 0; i < c->out[0]->n; i++)
        c->out[0]->f[i] = xm_ref_activation(XM_ACT_SWISH, beta, c->in[0]->f[i]);
    return XM_OK;
}

enum xm_status
xm_eval_gelu(struct xm_eval_call *c)
{
    enum xm_activation form = c->node->attr.gelu.approximation == XM_GELU_TANH
                                  ? XM_ACT_GELU_TANH
                                  : XM_ACT_GELU_ERF;
    XM_TRY(xm_eval_operands(c, "f"));
    for (uint64_t i = 0; i < c->out[0]->n; i++)
        c->out[0]->f[i] = xm_ref_activation(form, 1.0f, c->in[0]->f[i]);
    return XM_OK;
}

/* Bounds of integers are rounded inward, as far as they are not integers themselves. */
enum xm_status
xm_eval_clamp(struct xm_eval_call *c)
{
    float min = c->node->attr.clamp.min, max = c->node->attr.clamp.max;
    int64_t int_min = int_of(ceil((double)min)), int_max = int_of(floor((double)max));
    XM_TRY(xm_eval_operands(c, "s"));
    struct xm_tensor *out = c->out[0];
    for (uint64_t i = 0; out->f && i < out->n; i++) {
        float x = c->in[0]->f[i];
        out->f[i] = x < min ? min : x > max ? max : x;
    }
    for (uint64_t i = 0; out->i && i < out->n; i++) {
        int64_t x = c->in[0]->i[i];
        out->i[i] = x < int_min ? int_min : x > int_max ? int_max : x;
    }
    return XM_OK;
}

enum xm_status
xm_eval_logical_not(struct xm_eval_call *c)
{
    XM_TRY(xm_eval_operands(c, "i"));
    bool logical = c->node->op == XM_OP_LOGICAL_NOT || c->in[0]->element == XM_BOOL;
    for (uint64_t i = 0; i < c->out[0]->n; i++)
        c->out[0]->i[i] = logical ? !c->in[0]->i[i] : ~c->in[0]->i[i];
    xm_tensor_wrap(c->out[0]);
    return XM_OK;
}

/* Between float types nothing is rounded: all are held as f32. */
enum xm_status
xm_eval_convert(struct xm_eval_call *c)
{
    XM_TRY(xm_eval_operands(c, "aA"));
    const struct xm_tensor *x = c->in[0];
    struct xm_tensor *out = c->out[0];
    bool to_bool = out->element == XM_BOOL;
    for (uint64_t i = 0; out->f && i < out->n; i++)
        out->f[i] = x->f ? x->f[i] : (float)x->i[i];
    for (uint64_t i = 0; out->i && i < out->n; i++) {
        if (x->i)
            out->i[i] = to_bool ? x->i[i] != 0 : x->i[i];
        else
            out->i[i] = to_bool ? x->f[i] != 0.0f : int_of((double)x->f[i]);
    }
    xm_tensor_wrap(out);
    return XM_OK;
}

enum xm_status
xm_eval_select(struct xm_eval_call *c)
{
    struct xm_walk w;
    uint64_t done = 0;
    XM_TRY(xm_eval_operands(c, "iss"));
    xm_walk_operands(&w, c, 3);
    while (xm_walk_row(&w)) {
        for (int64_t i = 0; i < w.inner; i++, done++) {
            uint32_t from = c->in[0]->i[xm_walk_at(&w, 0, i)] ? 1 : 2;
            xm_tensor_move(c->out[0], done, c->in[from],
                           (uint64_t)xm_walk_at(&w, from, i), 1);
        }
    }
    return XM_OK;
}
