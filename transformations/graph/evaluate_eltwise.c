/* SPDX-License-Identifier: Apache-2.0
 *
 * References of the elementwise ops, with numpy broadcasting.
 *
 * Floats are computed by one row function for each op. Integers, which are rare, are computed in
 * int64 by one switch for each element, and then wrap at the width of their type.
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

/* Ops on floats (second column) and on integers, which wrap (third column). */
/* clang-format off */
#define ARITHMETIC(OP)                                                                   \
    OP(ADD,                a + b,                     ua + ub)                           \
    OP(SUBTRACT,           a - b,                     ua - ub)                           \
    OP(MULTIPLY,           a * b,                     ua * ub)                           \
    OP(DIVIDE,             a / b,                     divide_ints(a, b, attr->divide.python)) \
    OP(POWER,              powf(a, b),                power_ints(a, b))                  \
    OP(MINIMUM,            a < b ? a : b,             a < b ? a : b)                     \
    OP(MAXIMUM,            a > b ? a : b,             a > b ? a : b)                     \
    OP(MOD,                fmodf(a, b),               mod_ints(a, b, false))             \
    OP(FLOOR_MOD,          a - b * floorf(a / b),     mod_ints(a, b, true))              \
    OP(SQUARED_DIFFERENCE, (a - b) * (a - b),         (ua - ub) * (ua - ub))
/* Ops on integers and booleans only. */
#define LOGIC(OP)                                                                        \
    OP(EQUAL,         a == b)                                                            \
    OP(NOT_EQUAL,     a != b)                                                            \
    OP(LESS,          a < b)                                                             \
    OP(LESS_EQUAL,    a <= b)                                                            \
    OP(GREATER,       a > b)                                                             \
    OP(GREATER_EQUAL, a >= b)                                                            \
    OP(LOGICAL_AND,   a && b)                                                            \
    OP(LOGICAL_OR,    a || b)                                                            \
    OP(LOGICAL_XOR,   !a != !b)                                                          \
    OP(BITWISE_AND,   a & b)                                                             \
    OP(BITWISE_OR,    a | b)                                                             \
    OP(BITWISE_XOR,   a ^ b)
/* clang-format on */

#define ROW(op, floats, ints)                                                            \
    static void row_##op(const struct row *r)                                            \
    {                                                                                    \
        for (int64_t i = 0; i < r->n; i++) {                                             \
            float a = r->a[i * r->step_a], b = r->b[i * r->step_b];                      \
            r->out[i] = floats;                                                          \
        }                                                                                \
    }
ARITHMETIC(ROW)

static void (*const rows[XM_OP_COUNT])(const struct row *r) = {
#define OF_OP(op, floats, ints) [XM_OP_##op] = row_##op,
    ARITHMETIC(OF_OP)};

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

/* Converts to int64: values outside its range saturate, NaN becomes 0. */
static int64_t
int_of(double v)
{
    if (!(v > -9.2e18))
        return v != v ? 0 : INT64_MIN;
    return v >= 9.2e18 ? INT64_MAX : (int64_t)v;
}

/* The root rounded down, exact also above 2^53, where f64 rounds x; 0 for a negative x. */
static int64_t
root_int(int64_t x)
{
    const uint64_t n = x > 0 ? (uint64_t)x : 0;
    uint64_t r = (uint64_t)sqrt((double)n);
    while (r * r > n)
        r--;
    while ((r + 1) * (r + 1) <= n)
        r++;
    return (int64_t)r;
}

/* a / b rounded toward zero, or down if `down`; INT64_MIN / -1 wraps. b is not 0. */
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

/* a^b, which wraps. A negative exponent gives the reciprocal, truncated toward zero; 0 has none and
 * gives 0. */
static int64_t
power_ints(int64_t a, int64_t b)
{
    uint64_t y = 1, square = (uint64_t)a;
    if (b < 0)
        return a == 1 || (a == -1 && b % 2 == 0) ? 1 : a == -1 ? -1 : 0;
    for (; b > 0; b /= 2, square *= square)
        y *= b % 2 ? square : 1;
    return (int64_t)y;
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
#define ARITHMETIC_CASE(op, floats, ints)                                                \
    case XM_OP_##op:                                                                     \
        return (int64_t)(ints);
#define LOGIC_CASE(op, ints) ARITHMETIC_CASE(op, , ints)
        ARITHMETIC(ARITHMETIC_CASE)
        LOGIC(LOGIC_CASE)
    default:
        return 0;
    }
}

static enum xm_status
binary_ints(struct xm_eval_call *c, struct xm_walk *w)
{
    const struct xm_node *n = c->node;
    int64_t *out = c->out[0]->i;
    while (xm_walk_next(w)) {
        int64_t a = c->in[0]->i[w->at[0]], b = c->in[1]->i[w->at[1]];
        if (b == 0 && xm_int_divides(n->op))
            return xm_fail(c->err, XM_INVALID, "an integer is divided by 0");
        *out++ = xm_int_binary(n->op, &n->attr, a, b);
    }
    xm_tensor_wrap(c->out[0]);
    return XM_OK;
}

/* Compares floats by comparing their order (-1, 0 or 1) with 0 as integers. NaN is unequal to every
 * number. */
static void
compare_floats(struct xm_eval_call *c, struct xm_walk *w)
{
    const struct xm_node *n = c->node;
    int64_t *out = c->out[0]->i;
    while (xm_walk_next(w)) {
        float a = c->in[0]->f[w->at[0]], b = c->in[1]->f[w->at[1]];
        *out++ = isnan(a) || isnan(b)
                     ? n->op == XM_OP_NOT_EQUAL
                     : xm_int_binary(n->op, &n->attr, (a > b) - (a < b), 0);
    }
}

enum xm_status
xm_eval_binary(struct xm_eval_call *c)
{
    struct xm_walk w;
    xm_walk_operands(&w, c, 2);
    if (c->out[0]->f)
        return binary_floats(c, &w);
    if (c->in[0]->i)
        return binary_ints(c, &w);
    compare_floats(c, &w);
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

static float
round_bf16(float x)
{
    return xm_bf16_to_float(xm_float_to_bf16(x));
}

/* The sign of x; NaN and zeros are returned unchanged. */
static float
sign(float x)
{
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}

/* hsigmoid(NaN) is 0. */
static float
hsigmoid(float x)
{
    return fminf(fmaxf(x + 3.0f, 0.0f), 6.0f) / 6.0f;
}

static float
hswish(float x)
{
    return x * hsigmoid(x);
}

static float
mish(float x)
{
    return x * tanhf(softplus(x));
}

static float
softsign(float x)
{
    return x / (1.0f + fabsf(x));
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
    [XM_OP_ASIN] = asinf,
    [XM_OP_ACOS] = acosf,
    [XM_OP_ATAN] = atanf,
    [XM_OP_ASINH] = asinhf,
    [XM_OP_ACOSH] = acoshf,
    [XM_OP_ATANH] = atanhf,
    [XM_OP_TAN] = tanf,
    [XM_OP_SINH] = sinhf,
    [XM_OP_COSH] = coshf,
    [XM_OP_SIGN] = sign,
    [XM_OP_RELU] = relu,
    [XM_OP_ERF] = erff,
    [XM_OP_FLOOR] = floorf,
    [XM_OP_CEILING] = ceilf,
    [XM_OP_SOFTPLUS] = softplus,
    [XM_OP_HSIGMOID] = hsigmoid,
    [XM_OP_HSWISH] = hswish,
    [XM_OP_MISH] = mish,
    [XM_OP_SOFTSIGN] = softsign,
    [XM_OP_ROUND_BF16] = round_bf16,
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
    case XM_OP_SIGN:
        *out = (x > 0) - (x < 0);
        return XM_OK;
    case XM_OP_FLOOR:
    case XM_OP_CEILING:
        *out = x;
        return XM_OK;
    case XM_OP_SQRT:
        *out = root_int(x);
        return XM_OK;
    default:
        return xm_fail(c->err, XM_UNSUPPORTED, "it is not defined on integers");
    }
}

enum xm_status
xm_eval_unary(struct xm_eval_call *c)
{
    struct xm_tensor *out = c->out[0];
    for (uint64_t i = 0; out->f && i < out->n; i++)
        out->f[i] = unaries[c->node->op](c->in[0]->f[i]);
    for (uint64_t i = 0; out->i && i < out->n; i++)
        XM_TRY(unary_int(c, c->in[0]->i[i], &out->i[i]));
    xm_tensor_wrap(out);
    return XM_OK;
}

/* Rounds floats; copies integers. */
enum xm_status
xm_eval_round(struct xm_eval_call *c)
{
    struct xm_tensor *out = c->out[0];
    const bool to_even = c->node->attr.round.mode == XM_ROUND_HALF_TO_EVEN;
    for (uint64_t i = 0; out->f && i < out->n; i++)
        out->f[i] = to_even ? rintf(c->in[0]->f[i]) : roundf(c->in[0]->f[i]);
    for (uint64_t i = 0; out->i && i < out->n; i++)
        out->i[i] = c->in[0]->i[i];
    return XM_OK;
}

enum xm_status
xm_eval_elu(struct xm_eval_call *c)
{
    const float alpha = c->node->attr.elu.alpha;
    for (uint64_t i = 0; i < c->out[0]->n; i++) {
        const float x = c->in[0]->f[i];
        c->out[0]->f[i] = x > 0.0f ? x : alpha * expm1f(x);
    }
    return XM_OK;
}

enum xm_status
xm_eval_swish(struct xm_eval_call *c)
{
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
    for (uint64_t i = 0; i < c->out[0]->n; i++)
        c->out[0]->f[i] = xm_ref_activation(form, 1.0f, c->in[0]->f[i]);
    return XM_OK;
}

/* For integers the bounds are rounded inward: min up, max down. */
enum xm_status
xm_eval_clamp(struct xm_eval_call *c)
{
    const double low = c->node->attr.clamp.min, high = c->node->attr.clamp.max;
    const float min = (float)low, max = (float)high;
    const int64_t int_min = int_of(ceil(low)), int_max = int_of(floor(high));
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
    bool logical = c->node->op == XM_OP_LOGICAL_NOT || c->in[0]->element == XM_BOOL;
    for (uint64_t i = 0; i < c->out[0]->n; i++)
        c->out[0]->i[i] = logical ? !c->in[0]->i[i] : ~c->in[0]->i[i];
    xm_tensor_wrap(c->out[0]);
    return XM_OK;
}

/* Converts. Values of all float types are f32 here, so converting between float types rounds
 * nothing. */
enum xm_status
xm_eval_convert(struct xm_eval_call *c)
{
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
    xm_walk_operands(&w, c, 3);
    while (xm_walk_next(&w)) {
        uint32_t from = c->in[0]->i[w.at[0]] ? 1 : 2;
        xm_tensor_move(c->out[0], done++, c->in[from], (uint64_t)w.at[from], 1);
    }
    return XM_OK;
}
