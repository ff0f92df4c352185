/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that the graph has no operation for, composed of those it has:
 *
 *     hswish(x)         x clamp(x + 3, 0, 6) / 6
 *     elu(x)            relu(x) + alpha (e^min(x, 0) - 1)
 *     log_softmax(x)    x - max x - ln sum e^(x - max x)
 *
 * and so on: the formula stands above each. What a language model runs in every token is not here:
 * an operation of its own is one launch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/readers/ir_records.h"
#include "runtime/util/number.h"

/* A layer, and where its nodes go. */
struct composing {
    struct xm_builder *b;
    const struct xm_ir_layer *l;
    struct xm_value *const *in;
    uint32_t n_in;
    struct xm_error *err; /* of attributes */
};

/* ---- attributes ---------------------------------------------------------------------- */

static const char *
text_of(const struct composing *c, const char *key, const char *usual)
{
    const char *text = xm_ir_attr(c->l, key);
    return text ? text : usual;
}

static bool
is_true(const struct composing *c, const char *key)
{
    const char *text = text_of(c, key, "false");
    return strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

static int64_t
whole_of(const struct composing *c, const char *key, const char *usual)
{
    const char *text = text_of(c, key, usual);
    char *end;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0)
        return n;
    xm_fail(c->err, XM_INVALID, "%s is \"%.40s\": expected a whole number", key, text);
    return 0;
}

static float
number_of(const struct composing *c, const char *key, const char *usual)
{
    const char *text = text_of(c, key, usual);
    char *end;
    const float f = xm_parse_float(text, &end);
    if (end != text && *end == '\0')
        return f;
    xm_fail(c->err, XM_INVALID, "%s is \"%.40s\": expected a number", key, text);
    return 0;
}

/* ---- short forms --------------------------------------------------------------------- */

#define ADD(x, y)      xm_op2(c->b, XM_OP_ADD, x, y)
#define SUBTRACT(x, y) xm_op2(c->b, XM_OP_SUBTRACT, x, y)
#define MULTIPLY(x, y) xm_op2(c->b, XM_OP_MULTIPLY, x, y)
#define DIVIDE(x, y)   xm_op2(c->b, XM_OP_DIVIDE, x, y)
#define EXP(x)         xm_op1(c->b, XM_OP_EXP, x)

/* A scalar of the element type of input 0. */
static struct xm_value *
scalar(const struct composing *c, float v)
{
    const enum xm_element e = c->in[0]->type.element;
    const int64_t i = (int64_t)v;
    if (xm_element_is_float(e))
        return xm_const_float(c->b, e, v);
    return xm_convert(c->b, xm_const_ints(c->b, XM_I64, &i, -1), e);
}

static struct xm_value *
clamp(const struct composing *c, struct xm_value *x, float min, float max)
{
    const union xm_attr a = {.clamp = {min, max}};
    return xm_op_build(c->b, XM_OP_CLAMP, &a, &x, 1);
}

static struct xm_value *
reduce(const struct composing *c, enum xm_op op, struct xm_value *x,
       struct xm_value *axes, bool keep_dims)
{
    const union xm_attr a = {.reduce = {keep_dims}};
    struct xm_value *in[] = {x, axes};
    return xm_op_build(c->b, op, &a, in, 2);
}

/* 1 where the comparison holds, else 0, in x's element type. */
static struct xm_value *
where(const struct composing *c, enum xm_op op, struct xm_value *x, struct xm_value *y)
{
    return xm_convert(c->b, xm_op2(c->b, op, x, y), c->in[0]->type.element);
}

/* e^min(x, 0) - 1 */
static struct xm_value *
exp_below_zero(const struct composing *c, struct xm_value *x)
{
    struct xm_value *below = xm_op2(c->b, XM_OP_MINIMUM, x, scalar(c, 0));
    return SUBTRACT(EXP(below), scalar(c, 1));
}

/* v [n] -> [n, 1, ...], which goes with dimension 1 of x. */
static struct xm_value *
by_channel(const struct composing *c, struct xm_value *v, const struct xm_value *x)
{
    int64_t dims[XM_MAX_RANK] = {-1, 1, 1, 1, 1, 1, 1, 1};
    const uint32_t rank = x->type.shape.rank;
    return rank < 3 ? v
                    : xm_op2(c->b, XM_OP_RESHAPE, v,
                             xm_const_ints(c->b, XM_I64, dims, (int)rank - 1));
}

/* ---- activations --------------------------------------------------------------------- */

/* clamp(x + 3, 0, 6) / 6 */
static struct xm_value *
hsigmoid(const struct composing *c)
{
    struct xm_value *x = c->in[0];
    return DIVIDE(clamp(c, ADD(x, scalar(c, 3)), 0, 6), scalar(c, 6));
}

static struct xm_value *
hswish(const struct composing *c)
{
    return MULTIPLY(c->in[0], hsigmoid(c));
}

/* clamp(alpha x + beta, 0, 1) */
static struct xm_value *
hard_sigmoid(const struct composing *c)
{
    return clamp(c, ADD(MULTIPLY(c->in[0], c->in[1]), c->in[2]), 0, 1);
}

/* x tanh(ln(1 + e^x)) */
static struct xm_value *
mish(const struct composing *c)
{
    struct xm_value *x = c->in[0];
    return MULTIPLY(x, xm_op1(c->b, XM_OP_TANH, xm_op1(c->b, XM_OP_SOFTPLUS, x)));
}

/* x / (1 + |x|) */
static struct xm_value *
softsign(const struct composing *c)
{
    struct xm_value *x = c->in[0];
    return DIVIDE(x, ADD(xm_op1(c->b, XM_OP_ABS, x), scalar(c, 1)));
}

/* relu(x) + alpha (e^min(x, 0) - 1) */
static struct xm_value *
elu(const struct composing *c)
{
    struct xm_value *x = c->in[0];
    struct xm_value *below =
        MULTIPLY(scalar(c, number_of(c, "alpha", "")), exp_below_zero(c, x));
    return ADD(xm_op1(c->b, XM_OP_RELU, x), below);
}

/* lambda (relu(x) + alpha (e^min(x, 0) - 1)) */
static struct xm_value *
selu(const struct composing *c)
{
    struct xm_value *x = c->in[0], *below = MULTIPLY(c->in[1], exp_below_zero(c, x));
    return MULTIPLY(c->in[2], ADD(xm_op1(c->b, XM_OP_RELU, x), below));
}

/* relu(x) + slope min(x, 0), a slope for each channel or for all */
static struct xm_value *
prelu(const struct composing *c)
{
    struct xm_value *x = c->in[0], *slope = c->in[1];
    const struct xm_shape *s = &slope->type.shape;
    if (s->rank == 1 && !(xm_dim_is_const(s->dim[0]) && s->dim[0].n == 1))
        slope = by_channel(c, slope, x);
    struct xm_value *below = xm_op2(c->b, XM_OP_MINIMUM, x, scalar(c, 0));
    return ADD(xm_op1(c->b, XM_OP_RELU, x), MULTIPLY(slope, below));
}

/* ---- arithmetic ---------------------------------------------------------------------- */

/* (x > 0) - (x < 0) */
static struct xm_value *
sign(const struct composing *c)
{
    struct xm_value *x = c->in[0], *zero = scalar(c, 0);
    return SUBTRACT(where(c, XM_OP_GREATER, x, zero), where(c, XM_OP_LESS, x, zero));
}

/* With d = x - floor(x):  floor(x) + (d > 1/2, or d = 1/2 and floor(x) is odd) */
static struct xm_value *
round_to_even(const struct composing *c)
{
    struct xm_value *x = c->in[0], *down = xm_op1(c->b, XM_OP_FLOOR, x);
    struct xm_value *d = SUBTRACT(x, down), *half = scalar(c, 0.5f);
    struct xm_value *odd = xm_op2(c->b, XM_OP_FLOOR_MOD, down, scalar(c, 2));
    struct xm_value *tie = MULTIPLY(where(c, XM_OP_EQUAL, d, half), odd);
    return ADD(down, ADD(where(c, XM_OP_GREATER, d, half), tie));
}

/* With t = |x|:  sign(x) (floor(t) + (t - floor(t) >= 1/2)) */
static struct xm_value *
round_from_zero(const struct composing *c)
{
    struct xm_value *t = xm_op1(c->b, XM_OP_ABS, c->in[0]);
    struct xm_value *down = xm_op1(c->b, XM_OP_FLOOR, t);
    struct xm_value *up =
        where(c, XM_OP_GREATER_EQUAL, SUBTRACT(t, down), scalar(c, 0.5f));
    return MULTIPLY(sign(c), ADD(down, up));
}

static struct xm_value *
round_any(const struct composing *c)
{
    const char *mode = text_of(c, "mode", "half_to_even");
    if (strcmp(mode, "half_to_even") == 0)
        return round_to_even(c);
    if (strcmp(mode, "half_away_from_zero") == 0)
        return round_from_zero(c);
    xm_fail(c->err, XM_UNSUPPORTED,
            "mode is \"%.40s\": expected half_to_even or half_away_from_zero", mode);
    return NULL;
}

static struct xm_value *
tangent(const struct composing *c)
{
    return DIVIDE(xm_op1(c->b, XM_OP_SIN, c->in[0]), xm_op1(c->b, XM_OP_COS, c->in[0]));
}

/* (e^x -+ e^-x) / 2 */
static struct xm_value *
hyperbolic(const struct composing *c, enum xm_op op)
{
    struct xm_value *up = EXP(c->in[0]);
    struct xm_value *down = EXP(xm_op1(c->b, XM_OP_NEGATIVE, c->in[0]));
    return DIVIDE(xm_op2(c->b, op, up, down), scalar(c, 2));
}

static struct xm_value *
hyperbolic_sine(const struct composing *c)
{
    return hyperbolic(c, XM_OP_SUBTRACT);
}

static struct xm_value *
hyperbolic_cosine(const struct composing *c)
{
    return hyperbolic(c, XM_OP_ADD);
}

/* ---- updates ------------------------------------------------------------------------- */

/* Along the first axis alone: scatter_nd_update(x, ids with an axis of 1 behind, updates) */
static struct xm_value *
scatter_update(const struct composing *c)
{
    const int64_t last = -1;
    int64_t axis;
    if (xm_value_const_ints(c->in[3], &axis, 1) != 1 || axis != 0) {
        xm_fail(c->err, XM_UNSUPPORTED, "the axis must be a constant of 0");
        return NULL;
    }
    struct xm_value *ids =
        xm_op2(c->b, XM_OP_UNSQUEEZE, c->in[1], xm_const_ints(c->b, XM_I64, &last, 1));
    struct xm_value *in[] = {c->in[0], ids, c->in[2]};
    return xm_op_build(c->b, XM_OP_SCATTER_ND_UPDATE, NULL, in, 3);
}

/* ---- reductions and norms ------------------------------------------------------------ */

static struct xm_value *
reduce_l1(const struct composing *c)
{
    return reduce(c, XM_OP_REDUCE_SUM, xm_op1(c->b, XM_OP_ABS, c->in[0]), c->in[1],
                  is_true(c, "keep_dims"));
}

static struct xm_value *
reduce_l2(const struct composing *c)
{
    struct xm_value *x = c->in[0];
    return xm_op1(
        c->b, XM_OP_SQRT,
        reduce(c, XM_OP_REDUCE_SUM, MULTIPLY(x, x), c->in[1], is_true(c, "keep_dims")));
}

/* All of them, or any: the least or the largest of 0 and 1. */
static struct xm_value *
reduce_logical(const struct composing *c, enum xm_op op)
{
    struct xm_value *x = xm_convert(c->b, c->in[0], XM_I32);
    return xm_convert(c->b, reduce(c, op, x, c->in[1], is_true(c, "keep_dims")), XM_BOOL);
}

static struct xm_value *
reduce_and(const struct composing *c)
{
    return reduce_logical(c, XM_OP_REDUCE_MIN);
}

static struct xm_value *
reduce_or(const struct composing *c)
{
    return reduce_logical(c, XM_OP_REDUCE_MAX);
}

/* x - max x - ln sum e^(x - max x) */
static struct xm_value *
log_softmax(const struct composing *c)
{
    const int64_t axis = whole_of(c, "axis", "1");
    struct xm_value *axes = xm_const_ints(c->b, XM_I64, &axis, 1), *x = c->in[0];
    x = SUBTRACT(x, reduce(c, XM_OP_REDUCE_MAX, x, axes, true));
    struct xm_value *sum = reduce(c, XM_OP_REDUCE_SUM, EXP(x), axes, true);
    return SUBTRACT(x, xm_op1(c->b, XM_OP_LOG, sum));
}

/* x / sqrt(sum x^2 + eps), or of the larger of the two */
static struct xm_value *
normalize_l2(const struct composing *c)
{
    struct xm_value *x = c->in[0], *eps = scalar(c, number_of(c, "eps", ""));
    struct xm_value *sum = reduce(c, XM_OP_REDUCE_SUM, MULTIPLY(x, x), c->in[1], true);
    const bool adds = strcmp(text_of(c, "eps_mode", ""), "add") == 0;
    sum = adds ? ADD(sum, eps) : xm_op2(c->b, XM_OP_MAXIMUM, sum, eps);
    return DIVIDE(x, xm_op1(c->b, XM_OP_SQRT, sum));
}

/* (x - mean) / sqrt(variance + eps) gamma + beta */
static struct xm_value *
batch_norm(const struct composing *c)
{
    struct xm_value *x = c->in[0], *of[4];
    for (int i = 0; i < 4; i++)
        of[i] = by_channel(c, c->in[i + 1], x);
    struct xm_value *eps = scalar(c, number_of(c, "epsilon", ""));
    struct xm_value *deviation = xm_op1(c->b, XM_OP_SQRT, ADD(of[3], eps));
    return ADD(MULTIPLY(DIVIDE(SUBTRACT(x, of[2]), deviation), of[0]), of[1]);
}

/* mvn of [N, groups, the rest], as x, times the scale, plus the bias */
static struct xm_value *
group_norm(const struct composing *c)
{
    struct xm_value *x = c->in[0];
    const int64_t groups[] = {0, whole_of(c, "num_groups", ""), -1}, rest = 2;
    const union xm_attr apart = {.reshape = {.special_zero = true}},
                        asked = {.convert = {.element = XM_I64}},
                        norm = {.mvn = {.scaled = true,
                                        .epsilon = number_of(c, "epsilon", "")}};
    struct xm_value *in[] = {x, xm_const_ints(c->b, XM_I64, groups, 3)};
    struct xm_value *y = xm_op_build(c->b, XM_OP_RESHAPE, &apart, in, 2);
    struct xm_value *of_norm[] = {y, xm_const_ints(c->b, XM_I64, &rest, 1)};
    y = xm_op_build(c->b, XM_OP_MVN, &norm, of_norm, 2);
    y = xm_op2(c->b, XM_OP_RESHAPE, y, xm_op_build(c->b, XM_OP_SHAPE_OF, &asked, &x, 1));
    return ADD(MULTIPLY(y, by_channel(c, c->in[1], x)), by_channel(c, c->in[2], x));
}

/* ---- the table ----------------------------------------------------------------------- */

/* clang-format off */
static const struct xm_ir_composed rows[] = {
    {"BatchNormInference", "5",  5, batch_norm},
    {"Cosh",               "1",  1, hyperbolic_cosine},
    {"Elu",                "1",  1, elu},
    {"GroupNormalization", "12", 3, group_norm},
    {"HSigmoid",           "5",  1, hsigmoid},
    {"HSwish",             "4",  1, hswish},
    {"HardSigmoid",        "1",  3, hard_sigmoid},
    {"LogSoftmax",         "5",  1, log_softmax},
    {"Mish",               "4",  1, mish},
    {"NormalizeL2",        "1",  2, normalize_l2},
    {"PReLU",              "1",  2, prelu},
    {"ReduceL1",           "4",  2, reduce_l1},
    {"ReduceL2",           "4",  2, reduce_l2},
    {"ReduceLogicalAnd",   "1",  2, reduce_and},
    {"ReduceLogicalOr",    "1",  2, reduce_or},
    {"Round",              "5",  1, round_any},
    {"ScatterUpdate",      "3",  4, scatter_update},
    {"Selu",               "1",  3, selu},
    {"Sign",               "1",  1, sign},
    {"Sinh",               "1",  1, hyperbolic_sine},
    {"SoftSign",           "9",  1, softsign},
    {"Tan",                "1",  1, tangent},
};
/* clang-format on */

const struct xm_ir_composed *
xm_ir_composed_find(const char *type)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].type, type) == 0)
            return &rows[i];
    }
    return NULL;
}

struct xm_value *
xm_ir_compose(const struct xm_ir_composed *row, struct xm_builder *b,
              const struct xm_ir_layer *l, struct xm_value *const *in,
              struct xm_error *err)
{
    const struct composing c = {b, l, in, l->in.n, err};
    struct xm_value *v = row->build(&c);
    return err->status == XM_OK ? v : NULL;
}
