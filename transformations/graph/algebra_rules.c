/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of algebra.h, one for each family of ops. A comment before a rule names the
 * operands. */
#include "transformations/graph/algebra_rules.h"

#include <string.h>

enum { X = 1, Y = 2 }; /* bits for operands 0 and 1 */

static uint64_t
bit(uint32_t i)
{
    return UINT64_C(1) << i;
}

static bool
is_float(const struct xm_value *v)
{
    return xm_element_is_float(v->type.element);
}

/* ---- elementwise; their splits are listed for them --------------------------------------- */

/* Rules that claim the same whatever the attributes are: `how` is a member of struct
 * xm_linearity. */
#define CLAIM(name, how, operands)                                                       \
    void xm_algebra_##name(struct xm_algebra *a)                                         \
    {                                                                                    \
        a->linear.how = operands;                                                        \
    }
CLAIM(none, alone, 0)
CLAIM(first, alone, X)
CLAIM(second, alone, Y)
CLAIM(product, alone, X | Y)
CLAIM(sum, jointly, X | Y)
CLAIM(select, jointly, bit(1) | bit(2))

/* Linear in the dividend; but not for integers, whose quotient is rounded. */
void
xm_algebra_divide(struct xm_algebra *a)
{
    a->linear.alone = is_float(&a->node->out[0]) ? X : 0;
}

/* ---- assignments ------------------------------------------------------------------------- */

enum { RESULTS = -1, NOTHING = 63, LAST = -1, SUMMANDS = -2, ONCE = -3 };

/* How an assignment lays out operand `of`, if it is present, or all RESULTS: split along dimension
 * `dim` (LAST: the last one) in multiples of `grain`; or dim is SUMMANDS: partial sums; or ONCE:
 * the first device has it. */
struct part {
    int of, dim;
    int64_t grain;
};

static void
lay_out(struct xm_layout *l, const struct xm_value *v, const struct part *p)
{
    const uint32_t dim = p->dim == LAST ? v->type.shape.rank - 1 : (uint32_t)p->dim;
    if (p->dim == SUMMANDS || p->dim == ONCE)
        l->kind = p->dim == ONCE ? XM_FIRST : XM_PARTIAL;
    else
        xm_algebra_split(l, dim, p->grain);
}

/* Enumerates an assignment; true: it is the wanted one, and all layouts are set. */
static bool
list(struct xm_algebra *a, const struct part *parts, size_t n)
{
    const bool wanted = xm_algebra_next(a);
    for (size_t i = 0; wanted && i < n; i++) {
        const uint32_t of = (uint32_t)parts[i].of;
        for (uint32_t k = 0; parts[i].of == RESULTS && k < a->node->n_out; k++)
            lay_out(&a->out[k], &a->node->out[k], &parts[i]);
        if (parts[i].of != RESULTS && xm_algebra_has(a, of))
            lay_out(&a->in[of], xm_in(a->node, of), &parts[i]);
    }
    return wanted;
}
#define PARTS(...) ((const struct part[]){__VA_ARGS__})
#define LIST(a, ...)                                                                     \
    list(a, PARTS(__VA_ARGS__), sizeof(PARTS(__VA_ARGS__)) / sizeof(struct part))

/* ---- shape and layout -------------------------------------------------------------------- */

/* result, assign, convert_like: they copy operand 0 element by element. */
void
xm_algebra_copy(struct xm_algebra *a)
{
    if (is_float(xm_in(a->node, 0)) == is_float(&a->node->out[0]))
        a->linear.alone = X;
    if (a->linear.alone)
        a->linear.carried = X;
    xm_algebra_split_elements(a, 1, 0);
}

void
xm_algebra_convert(struct xm_algebra *a)
{
    if (is_float(xm_in(a->node, 0)) && is_float(&a->node->out[0]))
        a->linear.alone = X;
}

/* Enumerates the assignment that splits dimension i of the operand and dimension j of the result,
 * each in multiples of its grain: a grain above 1 is the number of elements for one element of the
 * other dimension. */
static void
list_reshaped(struct xm_algebra *a, uint32_t i, int64_t grain_in, uint32_t j,
              int64_t grain_out)
{
    if (LIST(a, {0, (int)i, grain_in}, {RESULTS, (int)j, grain_out}) &&
        a->node->op == XM_OP_RESHAPE)
        a->in[1] = (struct xm_layout){XM_SIZES, j, 1};
}

/* Advances *i and *j behind the first dimensions of x and of y whose products are equal; false:
 * there are none. */
static bool
skip_equal_products(const struct xm_shape *x, const struct xm_shape *y, uint32_t *i,
                    uint32_t *j)
{
    uint64_t a = 1, b = 1;
    do {
        const struct xm_shape *s = a <= b ? x : y;
        uint32_t *at = a <= b ? i : j;
        uint64_t *product = a <= b ? &a : &b;
        if (*at == s->rank || !xm_dim_is_const(s->dim[*at]) || s->dim[*at].n < 1 ||
            !xm_mul_size(*product, (uint64_t)s->dim[*at].n, product))
            return false;
        ++*at;
    } while (a != b);
    return true;
}

/* Splits dimensions that x and y share: from the front those that are equal or multiples of each
 * other, then from the back those that are equal. */
void
xm_algebra_reshape(struct xm_algebra *a)
{
    const struct xm_shape *x = xm_algebra_shape(a, 0), *y = &a->node->out[0].type.shape;
    uint32_t i = 0, j = 0, k = x->rank, l = y->rank;
    a->linear.alone = X;
    while (i < x->rank && j < y->rank) {
        struct xm_dim p = x->dim[i], q = y->dim[j];
        if (xm_dim_is(p, 1) || xm_dim_is(q, 1)) {
            i += xm_dim_is(p, 1);
            j += xm_dim_is(q, 1);
        } else if (xm_dim_eq(p, q)) {
            list_reshaped(a, i++, 1, j++, 1);
        } else if (xm_dim_is_const(p) && xm_dim_is_const(q) && p.n > 0 && q.n > 0) {
            if (p.n % q.n == 0)
                list_reshaped(a, i, p.n / q.n, j, 1);
            else if (q.n % p.n == 0)
                list_reshaped(a, i, 1, j, q.n / p.n);
            if (!skip_equal_products(x, y, &i, &j))
                break;
        } else {
            break;
        }
    }
    while (k > i && l > j && xm_dim_eq(x->dim[k - 1], y->dim[l - 1])) {
        k--;
        l--;
        if (!xm_dim_is(x->dim[k], 1))
            list_reshaped(a, k, 1, l, 1);
    }
}

void
xm_algebra_transpose(struct xm_algebra *a)
{
    int64_t order[XM_MAX_RANK];
    const int rank = (int)xm_algebra_shape(a, 0)->rank;
    const int n = xm_value_const_ints(xm_in(a->node, 1), order, XM_MAX_RANK);
    a->linear.alone = X;
    for (int d = 0; d < rank && (n == rank || n == 0); d++)
        LIST(a, {RESULTS, d, 1}, {0, n ? (int)order[d] : rank - 1 - d, 1});
}

/* Axes as bits; negative axes count from the end. UINT32_MAX: they are not known or not valid. */
static uint32_t
bits_of_axes(const int64_t *axes, int n, uint32_t rank)
{
    uint32_t bits = 0;
    for (int i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)rank : axes[i];
        if (axis < 0 || axis >= (int64_t)rank)
            return UINT32_MAX;
        bits |= 1u << axis;
    }
    return n < 0 ? UINT32_MAX : bits;
}

static uint32_t
axes_of(const struct xm_algebra *a, uint32_t operand)
{
    int64_t axes[XM_MAX_RANK];
    const int n = xm_value_const_ints(xm_in(a->node, operand), axes, XM_MAX_RANK);
    return bits_of_axes(axes, n, xm_algebra_shape(a, 0)->rank);
}

static uint32_t
axis_of(const struct xm_algebra *a, int64_t axis)
{
    return bits_of_axes(&axis, 1, xm_algebra_shape(a, 0)->rank);
}

void
xm_algebra_concat(struct xm_algebra *a)
{
    const uint32_t n = a->node->n_in;
    a->linear.jointly = n < 64 ? bit(n) - 1 : UINT64_MAX;
    xm_algebra_split_rows(a, n, axis_of(a, a->node->attr.axis.axis));
}

/* Splits an axis of which a slice takes one element of each `step`, as of interleaved rows: each
 * device does the same with whole steps. */
static void
list_steps(struct xm_algebra *a, uint32_t axis, int64_t start)
{
    const struct xm_dim whole = xm_algebra_shape(a, 0)->dim[axis];
    const struct xm_dim taken = a->node->out[0].type.shape.dim[axis];
    int64_t step;
    if (xm_value_const_ints(xm_in(a->node, 3), &step, 1) == 1 && step > 1 && start >= 0 &&
        start < step && xm_dim_is_const(whole) && xm_dim_is(taken, whole.n / step) &&
        whole.n % step == 0)
        LIST(a, {0, (int)axis, step}, {RESULTS, (int)axis, 1});
}

/* data, starts, stops, steps, axes. Without axes the slice is along the first axes, one for each
 * start. */
void
xm_algebra_slice(struct xm_algebra *a)
{
    int64_t starts[XM_MAX_RANK];
    const int n = xm_value_const_ints(xm_in(a->node, 1), starts, XM_MAX_RANK);
    const uint32_t sliced = xm_algebra_has(a, 4) ? axes_of(a, 4)
                            : n < 0              ? UINT32_MAX
                                                 : (1u << n) - 1;
    a->linear.alone = X;
    xm_algebra_split_rows(a, 1, sliced);
    for (uint32_t d = 0; d < xm_algebra_shape(a, 0)->rank && n == 1; d++) {
        if (sliced == 1u << d)
            list_steps(a, d, starts[0]);
    }
}

/* data, indices, axis: the result has the dimensions of data, but those of indices in place of the
 * axis. */
void
xm_algebra_gather(struct xm_algebra *a)
{
    const uint32_t axis = axes_of(a, 2), rank = xm_algebra_shape(a, 0)->rank;
    const uint32_t more = xm_algebra_shape(a, 1)->rank;
    uint32_t at = 0; /* dimension of the result */
    a->linear.alone = X;
    if (a->node->attr.gather.batch_dims != 0 || axis == UINT32_MAX || !axis)
        return;
    for (uint32_t d = 0; d < rank; d++) {
        bool is_axis = axis >> d & 1;
        for (uint32_t j = 0; j < (is_axis ? more : 1); j++, at++)
            LIST(a, {is_axis, (int)(is_axis ? j : d), 1}, {RESULTS, (int)at, 1});
    }
}

/* data, indices, updates */
void
xm_algebra_scatter(struct xm_algebra *a)
{
    const int reduction = a->node->attr.scatter.reduction;
    if (reduction == XM_REDUCTION_NONE || reduction == XM_REDUCTION_SUM)
        a->linear.jointly = bit(0) | bit(2);
}

/* ---- along an axis ----------------------------------------------------------------------- */

/* The axes of operand 0 along which the op combines elements or cuts, so that they must not be
 * split. */
static uint32_t
combined_axes(const struct xm_algebra *a)
{
    switch (a->node->op) {
    case XM_OP_SOFTMAX:
        return axis_of(a, a->node->attr.axis.axis);
    case XM_OP_TOPK:
        return axis_of(a, a->node->attr.topk.axis);
    case XM_OP_CUM_SUM:
        return a->node->n_in == 2 ? axes_of(a, 1) : axis_of(a, 0);
    case XM_OP_MVN:
    case XM_OP_SPLIT:
    case XM_OP_VARIADIC_SPLIT:
        return axes_of(a, 1);
    case XM_OP_ROPE_TABLES: /* positions [B,T], frequencies */
        return 0;
    default:
        return axis_of(a, -1);
    }
}

void
xm_algebra_rows(struct xm_algebra *a)
{
    xm_algebra_split_rows(a, 1, combined_axes(a));
}

void
xm_algebra_linear_rows(struct xm_algebra *a)
{
    a->linear.alone = X;
    xm_algebra_rows(a);
}

/* x, gamma [..,N or 1]: a row is normalised as a whole, so the last axis is not split. */
void
xm_algebra_rms_norm(struct xm_algebra *a)
{
    a->linear.alone = Y;
    xm_algebra_rows(a);
}

/* data, axes. If a reduced axis is split, each device has a summand of the sum. */
void
xm_algebra_reduce(struct xm_algebra *a)
{
    const bool sums = a->node->op == XM_OP_REDUCE_SUM;
    const uint32_t axes = axes_of(a, 1);
    uint32_t at = 0;
    if (sums || (a->node->op == XM_OP_REDUCE_MEAN && is_float(&a->node->out[0])))
        a->linear.alone = X;
    for (uint32_t d = 0; d < xm_algebra_shape(a, 0)->rank && axes != UINT32_MAX; d++) {
        bool reduced = axes >> d & 1;
        if (!reduced || sums)
            LIST(a, {0, (int)d, 1}, {RESULTS, reduced ? SUMMANDS : (int)at, 1});
        at += !reduced || a->node->attr.reduce.keep_dims;
    }
}

/* ---- products ---------------------------------------------------------------------------- */

/* The index of a matrix dimension of operand i: the one that is summed over (`inner`), or the
 * other. */
static int
matrix_dim(const struct xm_algebra *a, uint32_t i, bool inner)
{
    const bool transposed =
        i ? a->node->attr.matmul.transpose_b : a->node->attr.matmul.transpose_a;
    const int rank = (int)xm_algebra_shape(a, i)->rank;
    return rank - ((i == 0) == (inner != transposed) ? 1 : 2);
}

/* The multiple at which columns of operand i may be cut: a weight only between blocks, or groups
 * with a scale. */
static int64_t
column_grain(const struct xm_algebra *a, uint32_t i)
{
    const struct xm_node *n = xm_in(a->node, i)->node;
    const struct xm_weight *w = n->op == XM_OP_WEIGHT ? &n->attr.weight : NULL;
    return !w                       ? 1
           : xm_weight_is_blocks(w) ? (int64_t)xm_weight_info(w)->block_cols
           : w->group               ? (int64_t)w->group
                                    : 1;
}

void
xm_algebra_matmul(struct xm_algebra *a)
{
    const int rank = (int)a->node->out[0].type.shape.rank;
    const int64_t grain = column_grain(a, 1);
    a->linear.alone = X | Y;
    if (xm_algebra_shape(a, 0)->rank < 2 || xm_algebra_shape(a, 1)->rank < 2)
        return;
    for (int i = 0; i < 2; i++) {
        const int dim = matrix_dim(a, (uint32_t)i, false);
        const bool columns = dim + 1 == (int)xm_algebra_shape(a, (uint32_t)i)->rank;
        const int64_t own = columns ? column_grain(a, (uint32_t)i) : 1;
        LIST(a, {i, dim, own}, {RESULTS, rank - 2 + i, own});
    }
    LIST(a, {0, matrix_dim(a, 0, true), grain}, {1, matrix_dim(a, 1, true), grain},
         {RESULTS, SUMMANDS, 1});
    xm_algebra_split_elements(a, 2, 2);
}

/* The layouts of the weight and the bias of one segment, and of all segments. */
#define SEGMENT(s, of_weight, of_bias, grain)                                            \
    {XM_LINEAR_W + (s)*XM_LINEAR_SEGMENT, of_weight, grain},                             \
    {                                                                                    \
        XM_LINEAR_BIAS + (s)*XM_LINEAR_SEGMENT, of_bias, grain                           \
    }
#define SEGMENTS(of_weight, of_bias, grain)                                              \
    SEGMENT(0, of_weight, of_bias, grain), SEGMENT(1, of_weight, of_bias, grain),        \
        SEGMENT(2, of_weight, of_bias, grain)
_Static_assert(XM_LINEAR_SEGMENTS == 3, "as many as SEGMENTS has");

void
xm_algebra_linear(struct xm_algebra *a)
{
    const int64_t grain = column_grain(a, XM_LINEAR_W);
    const bool glu = a->node->attr.linear.glu, more = xm_algebra_has(a, XM_LINEAR_ADDEND);
    const bool bias = xm_algebra_has(a, XM_LINEAR_W + a->result * XM_LINEAR_SEGMENT +
                                            XM_LINEAR_SEGMENT - 1);
    if (glu && more)
        a->linear.alone = bit(XM_LINEAR_FACTOR);
    if (!glu && !bias && more)
        a->linear.jointly = bit(XM_LINEAR_X) | bit(XM_LINEAR_ADDEND);
    else if (!glu && !bias)
        a->linear.alone = bit(XM_LINEAR_X);
    if (!glu && more)
        a->linear.carried = bit(XM_LINEAR_ADDEND);
    LIST(a, {XM_LINEAR_ADDEND, LAST, 1}, SEGMENTS(0, 0, 1), {RESULTS, LAST, 1});
    if (!glu)
        LIST(a, {XM_LINEAR_X, LAST, grain}, {XM_LINEAR_ADDEND, SUMMANDS, 1},
             SEGMENTS(1, SUMMANDS, grain), {RESULTS, SUMMANDS, 1});
    for (int d = 0; d + 1 < (int)a->node->out[0].type.shape.rank; d++)
        LIST(a, {XM_LINEAR_X, d, 1}, {XM_LINEAR_ADDEND, d, 1}, {RESULTS, d, 1});
}

/* ---- attention --------------------------------------------------------------------------- */

/* q, k, v, mask, scale, sinks: splits batches and heads, if q, k, v (and mask) have equally
 * many. */
void
xm_algebra_sdpa(struct xm_algebra *a)
{
    a->linear.alone = bit(2);
    if (!xm_algebra_has(a, 5))
        xm_algebra_split_elements(a, xm_algebra_has(a, 3) ? 4 : 3, 2);
}

/* x [B,T,H,D], cos and sin [B or 1,T,R] */
void
xm_algebra_rope(struct xm_algebra *a)
{
    a->linear.alone = X;
    for (int d = 0; d < 3; d++) {
        bool tables = d == 1 || (d == 0 && !xm_dim_is(xm_algebra_shape(a, 1)->dim[0], 1));
        LIST(a, {0, d, 1}, {tables ? 1 : NOTHING, d, 1}, {tables ? 2 : NOTHING, d, 1},
             {RESULTS, d, 1});
    }
}

const struct xm_node *
xm_attention_writer(const struct xm_node *n)
{
    const struct xm_node *w = n;
    while (w && (w->op != XM_OP_ATTENTION || xm_is_none(xm_in(w, XM_ATTENTION_K)) ||
                 strcmp(w->attr.attention.key_state, n->attr.attention.key_state) != 0))
        w = w->before;
    return w;
}

/* Splits heads: each device has some heads and their part of the state. If all queries share one
 * head of keys, queries are cut between any heads, and every device has the whole state. */
void
xm_algebra_attention(struct xm_algebra *a)
{
    const struct xm_node *writer = xm_attention_writer(a->node);
    if (!writer)
        return; /* it is not known how many query heads share a key head */
    const struct xm_dim q = xm_algebra_shape(a, XM_ATTENTION_Q)->dim[2];
    const struct xm_dim kv = xm_in(writer, XM_ATTENTION_K)->type.shape.dim[2];
    const bool mask = xm_algebra_has(a, XM_ATTENTION_MASK) &&
                      !xm_dim_is(xm_algebra_shape(a, XM_ATTENTION_MASK)->dim[1], 1);
    if (!xm_dim_is_const(q) || !xm_dim_is_const(kv) || kv.n < 1)
        return;
    const int64_t grain = kv.n == 1 ? 1 : q.n / kv.n;
    const int split = kv.n > 1;
    LIST(a, {XM_ATTENTION_Q, 2, grain}, {split ? XM_ATTENTION_K : NOTHING, 2, 1},
         {split ? XM_ATTENTION_V : NOTHING, 2, 1},
         {mask ? XM_ATTENTION_MASK : NOTHING, 1, grain}, {XM_ATTENTION_SINKS, 0, grain},
         {RESULTS, 2, grain});
}

/* ---- experts ----------------------------------------------------------------------------- */

/* a [1 or k,T,K], W [E,N,K], ids [T,k], bias [E,(1,)N] -> [k,T,N] */
void
xm_algebra_gather_matmul(struct xm_algebra *a)
{
    enum { A, W, IDS, BIAS };
    const int64_t grain = column_grain(a, W);
    if (!xm_algebra_has(a, BIAS))
        a->linear.alone = bit(A);
    LIST(a, {W, 1, 1}, {BIAS, LAST, 1}, {RESULTS, 2, 1});
    LIST(a, {A, 2, grain}, {W, 2, grain}, {BIAS, SUMMANDS, 1}, {RESULTS, SUMMANDS, 1});
    LIST(a, {A, 1, 1}, {IDS, 0, 1}, {RESULTS, 1, 1});
}

/* Splits the inner dimension I of every expert and of the shared expert; the results are summands.
 * Stacked gate and up have two ranges of rows for one part, so they are not split. */
static void
list_inner(struct xm_algebra *a)
{
    const int gate_up = a->node->attr.moe.gate_up;
    const int64_t rows = gate_up == XM_GATE_UP_APART ? 1 : 2;
    const bool stacked = gate_up == XM_GATE_UP_STACKED || gate_up == XM_UP_GATE_STACKED;
    const int64_t grain = column_grain(a, XM_MOE_W_DOWN);
    const int64_t shared =
        xm_algebra_has(a, XM_MOE_SHARED_DOWN) ? column_grain(a, XM_MOE_SHARED_DOWN) : 1;
    if (!stacked)
        LIST(a, {XM_MOE_W_GATE, 1, rows * grain}, {XM_MOE_BIAS_GATE, LAST, rows * grain},
             {XM_MOE_W_UP, 1, grain}, {XM_MOE_BIAS_UP, LAST, grain},
             {XM_MOE_FACTOR, LAST, grain}, {XM_MOE_W_DOWN, 2, grain},
             {XM_MOE_BIAS_DOWN, SUMMANDS, 1}, {XM_MOE_SHARED_GATE, 0, shared},
             {XM_MOE_SHARED_UP, 0, shared}, {XM_MOE_SHARED_DOWN, 1, shared},
             {XM_MOE_ADDEND, SUMMANDS, 1}, {RESULTS, SUMMANDS, 1});
}

/* Splits between experts: each device adds up the results of its experts. The shared expert is
 * split along I at the same fractions, or the first device has it. */
static void
list_experts(struct xm_algebra *a)
{
    const bool has_shared = xm_algebra_has(a, XM_MOE_SHARED_DOWN);
    const int64_t shared = has_shared ? column_grain(a, XM_MOE_SHARED_DOWN) : 1;
#define EXPERTS                                                                          \
    {XM_MOE_W_GATE, 0, 1}, {XM_MOE_W_UP, 0, 1}, {XM_MOE_W_DOWN, 0, 1},                   \
        {XM_MOE_BIAS_GATE, 0, 1}, {XM_MOE_BIAS_UP, 0, 1}, {XM_MOE_BIAS_DOWN, 0, 1},      \
        {XM_MOE_FACTOR, 0, 1}, {XM_MOE_ADDEND, SUMMANDS, 1},                             \
    {                                                                                    \
        RESULTS, SUMMANDS, 1                                                             \
    }
    if (xm_moe_is_part(&a->node->attr.moe))
        return;
    LIST(a, EXPERTS, {XM_MOE_SHARED_GATE, 0, shared}, {XM_MOE_SHARED_UP, 0, shared},
         {XM_MOE_SHARED_DOWN, 1, shared});
    if (has_shared)
        LIST(a, EXPERTS, {XM_MOE_SHARED_GATE, ONCE, 1}, {XM_MOE_SHARED_UP, ONCE, 1},
             {XM_MOE_SHARED_DOWN, ONCE, 1}, {XM_MOE_SHARED_GATE_GATE, ONCE, 1});
#undef EXPERTS
}

void
xm_algebra_moe(struct xm_algebra *a)
{
    static const uint32_t rows[] = {XM_MOE_ROUTING, XM_MOE_IDS, XM_MOE_ADDEND};
    const uint32_t rank = xm_algebra_shape(a, XM_MOE_HIDDEN)->rank;
    bool same = true;
    if (xm_algebra_has(a, XM_MOE_IDS) && !xm_algebra_has(a, XM_MOE_SHARED_DOWN) &&
        !xm_algebra_has(a, XM_MOE_ADDEND))
        a->linear.alone = bit(XM_MOE_ROUTING);
    if (xm_algebra_has(a, XM_MOE_ADDEND))
        a->linear.carried = bit(XM_MOE_ADDEND);
    list_inner(a);
    list_experts(a);
    for (uint32_t i = 0; i < XM_ARRAY_LEN(rows); i++)
        same &= !xm_algebra_has(a, rows[i]) ||
                (xm_algebra_shape(a, rows[i])->rank == rank && rank == 2);
    if (same)
        LIST(a, {XM_MOE_HIDDEN, 0, 1}, {XM_MOE_ROUTING, 0, 1}, {XM_MOE_IDS, 0, 1},
             {XM_MOE_ADDEND, 0, 1}, {RESULTS, 0, 1});
}

/* ---- chains of row-wise steps ------------------------------------------------------------ */

/* How a row depends on one operand: not, linearly, linearly plus a constant, otherwise. */
enum degree { CONSTANT, LINEAR, AFFINE, NONLINEAR };

static enum degree
degree_of_step(const struct xm_chain_step *s, enum degree a, enum degree b)
{
    if ((s->op == XM_CHAIN_RMS_NORM || s->op == XM_CHAIN_ROUND_BF16) && a != CONSTANT)
        return NONLINEAR;
    if (a == NONLINEAR || b == NONLINEAR)
        return NONLINEAR;
    if (s->op == XM_CHAIN_ADD)
        return a == b ? a : AFFINE;
    return a == CONSTANT ? b : b == CONSTANT ? a : NONLINEAR;
}

/* How result `result` depends on operand `in` of the chain (x, then c), or, for in = n_x + n_c, on
 * all x together. */
static enum degree
degree_of(const struct xm_row_chain *c, uint32_t in, uint32_t result)
{
    enum degree of[XM_CHAIN_STEPS];
    uint32_t y = 0;
    for (uint32_t i = 0; i < c->n_steps; i++) {
        const struct xm_chain_operand *o[] = {&c->step[i].a, &c->step[i].b};
        enum degree d[2];
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t at = o[k]->kind == XM_CHAIN_X   ? o[k]->i
                          : o[k]->kind == XM_CHAIN_C ? c->n_x + o[k]->i
                                                     : UINT32_MAX;
            bool asked = at == in || (in == c->n_x + c->n_c && o[k]->kind == XM_CHAIN_X);
            d[k] = o[k]->kind == XM_CHAIN_S ? of[o[k]->i] : asked ? LINEAR : CONSTANT;
        }
        of[i] = degree_of_step(&c->step[i], d[0], d[1]);
        if (c->step[i].is_result && y++ == result)
            return of[i];
    }
    return NONLINEAR;
}

void
xm_algebra_row_chain(struct xm_algebra *a)
{
    struct xm_row_chain c;
    uint64_t rows = 0;
    if (xm_row_chain_parse(a->node->attr.row_chain.steps, &c, NULL) != XM_OK)
        return;
    for (uint32_t i = 0; i < c.n_x + c.n_c; i++) {
        const enum degree d = degree_of(&c, i, a->result);
        a->linear.alone |= d == LINEAR ? bit(i) : 0;
        if (i < c.n_x && (d == LINEAR || d == AFFINE))
            a->linear.carried |= bit(i);
        if (i < c.n_x && d != CONSTANT)
            rows |= bit(i);
    }
    if (degree_of(&c, c.n_x + c.n_c, a->result) == LINEAR && !(rows & a->linear.alone))
        a->linear.jointly = rows;
    xm_algebra_split_rows(a, c.n_x, axis_of(a, -1));
}
