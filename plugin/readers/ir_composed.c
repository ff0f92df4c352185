/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers for which the graph has no operation, built from several of its operations:
 *
 *     selu(x)           lambda (x > 0: x, else alpha (e^x - 1))
 *     log_softmax(x)    x - max x - ln sum e^(x - max x)
 *
 * The formula stands above each function. Operations that a language model runs for every token are
 * not here, and neither are functions of a single element: those are rows of ops.def, which take
 * one launch each.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/readers/ir_records.h"

/* The layer being built and its builder. */
struct composing {
    struct xm_builder *b;
    const struct xm_ir_layer *l;
    struct xm_value *const *in;
    struct xm_error *err; /* for errors in attributes */
};

/* ---- attributes ---------------------------------------------------------------------- */

/* Reads an attribute as the attributes of operations are read (attrs.def). `usual`: the default;
 * NULL: the attribute is required. All union members used here are at the union's beginning. */
static union xm_attr
attribute(const struct composing *c, const char *key, const char *usual,
          enum xm_attr_kind kind, const char *const *names)
{
    const struct xm_attr_info info = {
        .op = XM_OP_NONE, .kind = kind, .text = key, .names = names};
    union xm_attr a;
    const char *text = xm_ir_attr(c->l, key);
    memset(&a, 0, sizeof(a));
    if (c->err->status != XM_OK)
        return a;
    if (!text && usual)
        text = usual;
    if (text || xm_ir_need(c->l, key, &text, c->err) == XM_OK)
        xm_attr_set(c->b->graph, &a, &info, text, c->err);
    return a;
}

static bool
truth_of(const struct composing *c, const char *key)
{
    return attribute(c, key, "false", XM_ATTR_BOOL, NULL).reduce.keep_dims;
}

static int64_t
integer_of(const struct composing *c, const char *key, const char *usual)
{
    return attribute(c, key, usual, XM_ATTR_I64, NULL).axis.axis;
}

static float
number_of(const struct composing *c, const char *key)
{
    return attribute(c, key, NULL, XM_ATTR_F32, NULL).rms_norm.epsilon;
}

static int
choice_of(const struct composing *c, const char *key, const char *usual,
          const char *const *names)
{
    return attribute(c, key, usual, XM_ATTR_ENUM, names).round.mode;
}

/* ---- short forms --------------------------------------------------------------------- */

static struct xm_value *
add(const struct composing *c, struct xm_value *x, struct xm_value *y)
{
    return xm_op2(c->b, XM_OP_ADD, x, y);
}

static struct xm_value *
subtract(const struct composing *c, struct xm_value *x, struct xm_value *y)
{
    return xm_op2(c->b, XM_OP_SUBTRACT, x, y);
}

static struct xm_value *
multiply(const struct composing *c, struct xm_value *x, struct xm_value *y)
{
    return xm_op2(c->b, XM_OP_MULTIPLY, x, y);
}

static struct xm_value *
divide(const struct composing *c, struct xm_value *x, struct xm_value *y)
{
    return xm_op2(c->b, XM_OP_DIVIDE, x, y);
}

static struct xm_value *
select_where(const struct composing *c, struct xm_value *holds, struct xm_value *x,
             struct xm_value *y)
{
    struct xm_value *in[] = {holds, x, y};
    return xm_op_build(c->b, XM_OP_SELECT, NULL, in, 3);
}

/* Returns 0 with the element type of input 0. */
static struct xm_value *
zero(const struct composing *c)
{
    const enum xm_element e = c->in[0]->type.element;
    const int64_t none = 0;
    if (xm_element_is_float(e))
        return xm_const_float(c->b, e, 0);
    return xm_convert(c->b, xm_const_ints(c->b, XM_I64, &none, -1), e);
}

static struct xm_value *
reduce(const struct composing *c, enum xm_op op, struct xm_value *x,
       struct xm_value *axes, bool keep_dims)
{
    const union xm_attr a = {.reduce = {keep_dims}};
    struct xm_value *in[] = {x, axes};
    return xm_op_build(c->b, op, &a, in, 2);
}

/* Converts a 16-bit float to f32, because squares and the epsilon that is added to a variance may
 * be out of its range. */
static struct xm_value *
widened(const struct composing *c, struct xm_value *x)
{
    const enum xm_element e = x->type.element;
    return e == XM_F16 || e == XM_BF16 ? xm_convert(c->b, x, XM_F32) : x;
}

/* Converts y back to the element type of input 0. */
static struct xm_value *
narrowed(const struct composing *c, struct xm_value *y)
{
    const enum xm_element e = c->in[0]->type.element;
    return e == XM_F16 || e == XM_BF16 ? xm_convert(c->b, y, e) : y;
}

/* Returns a vector of one element as a scalar, which broadcasts to operands of any rank; other
 * values unchanged. */
static struct xm_value *
single(const struct composing *c, struct xm_value *v)
{
    static const struct xm_shape scalar = {.rank = 0};
    const struct xm_shape *s = &v->type.shape;
    for (uint32_t i = 0; i < s->rank; i++) {
        if (!xm_dim_is_const(s->dim[i]) || s->dim[i].n != 1)
            return v;
    }
    return xm_reshape_like(c->b, v, &scalar);
}

/* Reshapes v [n] to [n, 1, …], which broadcasts along dimension 1 of x. */
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

/* clamp(alpha x + beta, 0, 1) */
static struct xm_value *
hard_sigmoid(const struct composing *c)
{
    const union xm_attr a = {.clamp = {0, 1}};
    struct xm_value *slope = multiply(c, c->in[0], single(c, c->in[1]));
    struct xm_value *x = add(c, slope, single(c, c->in[2]));
    return xm_op_build(c->b, XM_OP_CLAMP, &a, &x, 1);
}

/* lambda (x > 0: x, else alpha (e^x - 1)) */
static struct xm_value *
selu(const struct composing *c)
{
    const union xm_attr a = {.elu = {1}};
    struct xm_value *x = c->in[0], *alpha = single(c, c->in[1]);
    struct xm_value *lambda = single(c, c->in[2]);
    struct xm_value *below = multiply(c, alpha, xm_op_build(c->b, XM_OP_ELU, &a, &x, 1));
    struct xm_value *above = xm_op2(c->b, XM_OP_GREATER, x, zero(c));
    return multiply(c, lambda, select_where(c, above, x, below));
}

/* x < 0: slope x, else x; the slope is a scalar or has one value for each channel */
static struct xm_value *
prelu(const struct composing *c)
{
    struct xm_value *x = c->in[0], *slope = single(c, c->in[1]);
    if (slope && slope->type.shape.rank == 1)
        slope = by_channel(c, slope, x);
    struct xm_value *below = xm_op2(c->b, XM_OP_LESS, x, zero(c));
    return select_where(c, below, multiply(c, x, slope), x);
}

/* ---- updates ------------------------------------------------------------------------- */

/* Transposes x: moves the n axes from `first` on before all others or, with `back`, undoes that. */
static struct xm_value *
axes_to_front(const struct composing *c, struct xm_value *x, uint32_t first, uint32_t n,
              bool back)
{
    int64_t order[XM_MAX_RANK];
    const uint32_t rank = x ? x->type.shape.rank : 0;
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t from = i < n ? first + i : i < first + n ? i - n : i;
        if (back)
            order[from] = i;
        else
            order[i] = from;
    }
    return first == 0 ? x : xm_transpose(c->b, x, order, rank);
}

static enum xm_status
update_axis(const struct composing *c, uint32_t *out)
{
    const uint32_t rank = c->in[0]->type.shape.rank;
    int64_t axis;
    if (xm_value_const_ints(c->in[3], &axis, 1) != 1)
        return xm_fail(c->err, XM_UNSUPPORTED, "the axis must be a constant");
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return xm_fail(c->err, XM_INVALID,
                       "the axis is %" PRId64 ", outside a shape of rank %u", axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
    return XM_OK;
}

/* Transposed so that the axis is in front: scatter_nd_update(x, ids with a last axis of 1,
 * updates) */
static struct xm_value *
scatter_update(const struct composing *c)
{
    const int64_t last = -1;
    const uint32_t rank = c->in[0]->type.shape.rank, of_ids = c->in[1]->type.shape.rank,
                   of_updates = c->in[2]->type.shape.rank;
    uint32_t axis;
    if (update_axis(c, &axis) != XM_OK)
        return NULL;
    if (of_updates + 1 != rank + of_ids) {
        xm_fail(c->err, XM_INVALID, "the updates have rank %u, expected %u", of_updates,
                rank + of_ids - 1);
        return NULL;
    }
    struct xm_value *x = axes_to_front(c, c->in[0], axis, 1, false);
    struct xm_value *ids =
        xm_op2(c->b, XM_OP_UNSQUEEZE, c->in[1], xm_const_ints(c->b, XM_I64, &last, 1));
    struct xm_value *in[] = {x, ids, axes_to_front(c, c->in[2], axis, of_ids, false)};
    return axes_to_front(c, xm_op_build(c->b, XM_OP_SCATTER_ND_UPDATE, NULL, in, 3), axis,
                         1, true);
}

/* ---- reductions and norms ------------------------------------------------------------ */

static struct xm_value *
reduce_l1(const struct composing *c)
{
    return reduce(c, XM_OP_REDUCE_SUM, xm_op1(c->b, XM_OP_ABS, c->in[0]), c->in[1],
                  truth_of(c, "keep_dims"));
}

static struct xm_value *
reduce_l2(const struct composing *c)
{
    struct xm_value *x = widened(c, c->in[0]);
    struct xm_value *sum = reduce(c, XM_OP_REDUCE_SUM, multiply(c, x, x), c->in[1],
                                  truth_of(c, "keep_dims"));
    return narrowed(c, xm_op1(c->b, XM_OP_SQRT, sum));
}

/* reduce_logical_and and reduce_logical_or: the minimum or maximum of the elements as 0 and 1 */
static struct xm_value *
reduce_logical(const struct composing *c, enum xm_op op)
{
    struct xm_value *x = xm_convert(c->b, c->in[0], XM_I32);
    return xm_convert(c->b, reduce(c, op, x, c->in[1], truth_of(c, "keep_dims")),
                      XM_BOOL);
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
    const int64_t axis = integer_of(c, "axis", "1");
    struct xm_value *axes = xm_const_ints(c->b, XM_I64, &axis, 1), *x = c->in[0];
    x = subtract(c, x, reduce(c, XM_OP_REDUCE_MAX, x, axes, true));
    struct xm_value *sum =
        reduce(c, XM_OP_REDUCE_SUM, xm_op1(c->b, XM_OP_EXP, x), axes, true);
    return subtract(c, x, xm_op1(c->b, XM_OP_LOG, sum));
}

/* x / sqrt(sum x^2 + eps) or x / sqrt(max(sum x^2, eps)) */
static struct xm_value *
normalize_l2(const struct composing *c)
{
    static const char *const modes[] = {"add", "max", NULL};
    static const enum xm_op ops[] = {XM_OP_ADD, XM_OP_MAXIMUM};
    const float epsilon = number_of(c, "eps");
    const enum xm_op op = ops[choice_of(c, "eps_mode", "add", modes)];
    struct xm_value *x = widened(c, c->in[0]);
    struct xm_value *sum = reduce(c, XM_OP_REDUCE_SUM, multiply(c, x, x), c->in[1], true);
    struct xm_value *eps = x ? xm_const_float(c->b, x->type.element, epsilon) : NULL;
    return narrowed(c,
                    divide(c, x, xm_op1(c->b, XM_OP_SQRT, xm_op2(c->b, op, sum, eps))));
}

/* (x - mean) / sqrt(variance + eps) gamma + beta */
static struct xm_value *
batch_norm(const struct composing *c)
{
    enum { GAMMA, BETA, MEAN, VARIANCE, N };
    const float epsilon = number_of(c, "epsilon");
    struct xm_value *x = widened(c, c->in[0]), *of[N];
    for (int i = 0; i < N; i++)
        of[i] = by_channel(c, widened(c, c->in[i + 1]), c->in[0]);
    struct xm_value *eps = x ? xm_const_float(c->b, x->type.element, epsilon) : NULL;
    struct xm_value *deviation = xm_op1(c->b, XM_OP_SQRT, add(c, of[VARIANCE], eps));
    struct xm_value *y = divide(c, subtract(c, x, of[MEAN]), deviation);
    return narrowed(c, add(c, multiply(c, y, of[GAMMA]), of[BETA]));
}

static enum xm_status
check_groups(const struct composing *c, int64_t groups)
{
    const struct xm_shape *s = &c->in[0]->type.shape;
    if (c->err->status != XM_OK)
        return c->err->status;
    if (s->rank < 2)
        return xm_fail(c->err, XM_INVALID, "operand 0 has rank %u, expected 2 or more",
                       s->rank);
    if (groups < 1)
        return xm_fail(c->err, XM_INVALID,
                       "num_groups is %" PRId64 ", expected 1 or more", groups);
    if (xm_dim_is_const(s->dim[1]) && s->dim[1].n % groups != 0)
        return xm_fail(c->err, XM_INVALID,
                       "num_groups is %" PRId64 ", expected a divisor of the %" PRId64
                       " channels",
                       groups, s->dim[1].n);
    return XM_OK;
}

/* mvn(x as [N, groups, rest]) reshaped like x, times the scale, plus the bias */
static struct xm_value *
group_norm(const struct composing *c)
{
    struct xm_value *x = c->in[0];
    const int64_t groups[] = {0, integer_of(c, "num_groups", NULL), -1}, rest = 2;
    const union xm_attr apart = {.reshape = {.special_zero = true}},
                        asked = {.convert = {.element = XM_I64}},
                        norm = {
                            .mvn = {.scaled = true, .epsilon = number_of(c, "epsilon")}};
    if (check_groups(c, groups[1]) != XM_OK)
        return NULL;
    struct xm_value *in[] = {x, xm_const_ints(c->b, XM_I64, groups, 3)};
    struct xm_value *y = xm_op_build(c->b, XM_OP_RESHAPE, &apart, in, 2);
    struct xm_value *of_norm[] = {y, xm_const_ints(c->b, XM_I64, &rest, 1)};
    y = xm_op_build(c->b, XM_OP_MVN, &norm, of_norm, 2);
    y = xm_op2(c->b, XM_OP_RESHAPE, y, xm_op_build(c->b, XM_OP_SHAPE_OF, &asked, &x, 1));
    y = multiply(c, y, by_channel(c, c->in[1], x));
    return add(c, y, by_channel(c, c->in[2], x));
}

/* ---- the table ----------------------------------------------------------------------- */

/* clang-format off */
static const struct row {
    const char *type, *opsets; /* `opsets` as in ops.def */
    uint32_t n_in;
    bool needs_floats;
    /* returns a new node, never an operand */
    struct xm_value *(*build)(const struct composing *c);
} rows[] = {
    {"BatchNormInference", "5",  5, true,  batch_norm},
    {"GroupNormalization", "12", 3, true,  group_norm},
    {"HardSigmoid",        "1",  3, true,  hard_sigmoid},
    {"LogSoftmax",         "5",  1, true,  log_softmax},
    {"NormalizeL2",        "1",  2, true,  normalize_l2},
    {"PReLU",              "1",  2, false, prelu},
    {"ReduceL1",           "4",  2, false, reduce_l1},
    {"ReduceL2",           "4",  2, true,  reduce_l2},
    {"ReduceLogicalAnd",   "1",  2, false, reduce_and},
    {"ReduceLogicalOr",    "1",  2, false, reduce_or},
    {"ScatterUpdate",      "3",  4, false, scatter_update},
    {"Selu",               "1",  3, true,  selu},
};
/* clang-format on */

static const struct row *
find_row(const char *type)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].type, type) == 0)
            return &rows[i];
    }
    return NULL;
}

const char *
xm_ir_composed_opsets(const char *type, uint32_t *n_in)
{
    const struct row *row = find_row(type);
    *n_in = row ? row->n_in : 0;
    return row ? row->opsets : NULL;
}

/* Names the nodes behind `before`: layer name, operation and number; the result gets the layer's
 * own name. */
static enum xm_status
name_nodes(const struct composing *c, const struct xm_node *before,
           const struct xm_node *result)
{
    struct xm_graph *g = c->b->graph;
    struct xm_strbuf name = {0};
    bool named = true;
    int place = 0;
    for (struct xm_node *n = before ? before->next : g->first; n && named; n = n->next) {
        if (n == result)
            continue;
        xm_strbuf_clear(&name);
        xm_strbuf_printf(&name, "%s/%s_%d", c->l->name, xm_op_info(n->op)->text, place++);
        const char *text = xm_arena_strdup(&g->arena, xm_strbuf_text(&name));
        named = text && xm_strbuf_ok(&name);
        n->name = named ? text : "";
    }
    xm_strbuf_free(&name);
    return named ? XM_OK : xm_no_memory(c->err, "a name");
}

struct xm_value *
xm_ir_compose(struct xm_builder *b, const struct xm_ir_layer *l,
              struct xm_value *const *in, struct xm_error *err)
{
    const struct row *row = find_row(l->type);
    const struct composing c = {b, l, in, err};
    const enum xm_element e = in[0]->type.element;
    const struct xm_node *before = b->graph->last;
    if (row->needs_floats && e != XM_DYNAMIC && !xm_element_is_float(e)) {
        xm_fail(err, XM_INVALID, "operand 0 is %s, expected floats", xm_element_text(e));
        return NULL;
    }
    struct xm_value *v = row->build(&c);
    if (err->status != XM_OK || !v)
        return NULL;
    return name_nodes(&c, before, v->node) == XM_OK ? v : NULL;
}
