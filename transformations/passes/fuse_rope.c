/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes rotary embedding one operation on token-major tensors.
 *
 *     x cos + rotate_half(x) sin                              ->  rope(x, cos, sin)
 *     concat(x1 cos - x2 sin, x2 cos + x1 sin)                ->  rope(x, cos|cos, sin|sin)
 *     concat(rope(x[:R], cos, sin), x[R:])                    ->  rope(x, cos, sin)
 *
 *     rotate_half(x) = concat(-x2, x1);  x1 = x[:D/2], x2 = x[D/2:] on the last axis
 *
 * x is [B,H,T,D] with tables [B|1,1,T,R], or [B,T,H,D] with tables [B|1,T,1,R]; R is D, in the
 * second form D/2. rope works on [B,T,H,D] with tables [B|1,T,D]: the transposes that are added
 * around it cancel with those of the projections and of attention (remove_no_ops). Not done:
 * interleaved pairs, rotation of the last columns instead of the first.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum {
    X,
    COS,
    SIN,
    CAT,
    U_FROM,
    U_TO,
    U_STEP,
    U_AXIS,
    L_FROM,
    L_TO,
    L_STEP,
    L_AXIS,
    X1,
    X2,
    AXIS,
    LENGTHS,
    ORDER,
    ORDER_BACK
};

static bool
is_int(const struct xm_match *m, int slot, int64_t n)
{
    return xm_ints_equal(m->slot[slot], &n, 1);
}

/* The axis of x that is its tokens, by the shape of a table: 1, or 2 if heads come first; 0: the
 * table does not fit x. */
static uint32_t
token_axis(const struct xm_shape *table, const struct xm_shape *x, int64_t rotated)
{
    if (table->rank != 4 || !xm_dim_is(table->dim[3], rotated) ||
        (!xm_dim_eq(table->dim[0], x->dim[0]) && !xm_dim_is(table->dim[0], 1)))
        return 0;
    for (uint32_t t = 2; t >= 1; t--) {
        if (xm_dim_is(table->dim[3 - t], 1) && xm_dim_eq(table->dim[t], x->dim[t]))
            return t;
    }
    return 0;
}

/* Whether both tables fit x, whose last dimension is even. */
static bool
are_tables(struct xm_match *m, const struct xm_shape *x, int64_t rotated)
{
    uint32_t t = token_axis(&m->slot[COS]->type.shape, x, rotated);
    if (t == 0 || t != token_axis(&m->slot[SIN]->type.shape, x, rotated))
        m->why = "the tables are not [B|1,1,T,R] or [B|1,T,1,R]";
    return m->why == NULL;
}

static bool
has_halves(struct xm_match *m, const struct xm_shape *x)
{
    if (x->rank != 4 || !xm_dim_is_const(x->dim[3]) || x->dim[3].n % 2)
        m->why = "x is not of rank 4 with an even, constant D";
    return m->why == NULL;
}

static bool
is_rotation(struct xm_match *m)
{
    const struct xm_shape *x = &m->slot[X]->type.shape;
    if (!has_halves(m, x))
        return false;
    int64_t d = x->dim[3].n;
    int64_t concat_axis = m->slot[CAT]->node->attr.axis.axis;
    const struct xm_content *to = &m->slot[U_TO]->content;
    bool halves =
        is_int(m, U_FROM, d / 2) && to->n == 1 && xm_dim_is_const(to->e[0]) &&
        to->e[0].n >= d && is_int(m, U_STEP, 1) && xm_is_axis(m->slot[U_AXIS], 4, 3) &&
        is_int(m, L_FROM, 0) && is_int(m, L_TO, d / 2) && is_int(m, L_STEP, 1) &&
        xm_is_axis(m->slot[L_AXIS], 4, 3) && (concat_axis == 3 || concat_axis == -1);
    if (!halves)
        m->why = "the slices are not the two halves of the last axis";
    return m->why == NULL && are_tables(m, x, d);
}

/* Whether x1 and x2 are the halves of x, made by one split. */
static bool
is_split_rotation(struct xm_match *m)
{
    const struct xm_value *x1 = m->slot[X1], *x2 = m->slot[X2];
    const struct xm_shape *x = &m->slot[X]->type.shape;
    int64_t concat_axis = m->slot[CAT]->node->attr.axis.axis;
    if (!has_halves(m, x))
        return false;
    int64_t d = x->dim[3].n;
    if (x1->node != x2->node || x1->node->n_out != 2 || xm_last_dim(x1) != d / 2 ||
        xm_last_dim(x2) != d / 2 || (concat_axis != 3 && concat_axis != -1))
        m->why = "the halves are not those of the last axis";
    return m->why == NULL && are_tables(m, x, d / 2);
}

static bool
swaps_heads(const struct xm_value *order)
{
    static const int64_t swap[4] = {0, 2, 1, 3};
    return xm_ints_equal(order, swap, 4);
}

/* Whether the first columns of x are rotated, and the others follow unchanged. */
static bool
is_part(struct xm_match *m)
{
    const struct xm_shape *x = &m->slot[X]->type.shape;
    if (!has_halves(m, x))
        return false;
    const int64_t d = x->dim[3].n, r = xm_last_dim(m->slot[COS]);
    const int64_t concat_axis = m->root->attr.axis.axis;
    const struct xm_content *to = &m->slot[U_TO]->content;
    const bool is_first = is_int(m, L_FROM, 0) && is_int(m, L_TO, r) &&
                          is_int(m, L_STEP, 1) && xm_is_axis(m->slot[L_AXIS], 4, 3);
    const bool is_rest = is_int(m, U_FROM, r) && to->n == 1 &&
                         xm_dim_is_const(to->e[0]) && to->e[0].n >= d &&
                         is_int(m, U_STEP, 1) && xm_is_axis(m->slot[U_AXIS], 4, 3);
    if (!is_first || !is_rest || (concat_axis != 3 && concat_axis != -1))
        return refuse(
            m, "the slices are not the rotated columns and the columns after them");
    return !m->slot[ORDER] ||
           (swaps_heads(m->slot[ORDER]) && swaps_heads(m->slot[ORDER_BACK])) ||
           refuse(m, "the transposes do not just swap heads and tokens");
}

/* The table without its axis of size 1. */
static struct xm_value *
drop_axis(struct xm_builder *b, struct xm_value *table, uint32_t tokens)
{
    const struct xm_shape *s = &table->type.shape;
    const struct xm_dim d[3] = {s->dim[0], s->dim[tokens], s->dim[3]};
    return xm_reshape(b, table, d, 3);
}

/* The table twice along its last axis; made once for all layers. */
static struct xm_value *
twice(struct xm_builder *b, struct xm_value *table)
{
    struct xm_value *in[] = {table, table};
    union xm_attr attr = {.axis = {3}};
    for (struct xm_use *u = table->uses; u; u = u->next) {
        const struct xm_node *n = u->user;
        if (n->op == XM_OP_CONCAT && n->n_in == 2 && n->attr.axis.axis == 3 &&
            xm_in(n, 0) == table && xm_in(n, 1) == table)
            return &u->user->out[0];
    }
    return xm_op_build(b, XM_OP_CONCAT, &attr, in, 2);
}

static struct xm_value *
build_rope(struct xm_builder *b, struct xm_value *x, struct xm_value *cos,
           struct xm_value *sin)
{
    if (!cos || !sin)
        return NULL;
    int64_t rotated = xm_last_dim(cos);
    uint32_t tokens = token_axis(&cos->type.shape, &x->type.shape, rotated);
    bool heads_first = tokens == 2;
    struct xm_value *in[3] = {heads_first ? xm_swap_heads(b, x) : x,
                              drop_axis(b, cos, tokens), drop_axis(b, sin, tokens)};
    struct xm_value *y = xm_op_build(b, XM_OP_ROPE, NULL, in, 3);
    return heads_first ? xm_swap_heads(b, y) : y;
}

static struct xm_value *
make_rope(struct xm_builder *b, struct xm_match *m)
{
    return build_rope(b, m->slot[X], m->slot[COS], m->slot[SIN]);
}

static struct xm_value *
make_split_rope(struct xm_builder *b, struct xm_match *m)
{
    return build_rope(b, m->slot[X], twice(b, m->slot[COS]), twice(b, m->slot[SIN]));
}

static struct xm_value *
make_part(struct xm_builder *b, struct xm_match *m)
{
    struct xm_value *in[3] = {m->slot[X], m->slot[COS], m->slot[SIN]};
    if (!m->slot[ORDER])
        return xm_op_build(b, XM_OP_ROPE, NULL, in, 3);
    in[0] = xm_swap_heads(b, in[0]);
    return xm_swap_heads(b, xm_op_build(b, XM_OP_ROPE, NULL, in, 3));
}

/* clang-format off */
#define UPPER_HALF P(SLICE, VAR(X), INTS(U_FROM), INTS(U_TO), INTS(U_STEP), INTS(U_AXIS))
#define LOWER_HALF P(SLICE, VAR(X), INTS(L_FROM), INTS(L_TO), INTS(L_STEP), INTS(L_AXIS))
#define TIMES(a, b) P(MULTIPLY, a, VAR(b))
#define PAIRS(split, ...) \
    PN(CAT, CONCAT, P(SUBTRACT, TIMES(PO(X1, 0, split, __VA_ARGS__), COS), TIMES(PO(X2, 1, split, __VA_ARGS__), SIN)), \
                    P(ADD, TIMES(PO(X2, 1, split, __VA_ARGS__), COS), TIMES(PO(X1, 0, split, __VA_ARGS__), SIN)))
#define ROTATED(negated) \
    P(ADD, P(MULTIPLY, VAR(X), VAR(COS)), \
           P(MULTIPLY, PN(CAT, CONCAT, negated, LOWER_HALF), VAR(SIN)))

const struct xm_rule xm_rules_fuse_rope[] = {
    { "times minus one", ROTATED(P(MULTIPLY, UPPER_HALF, SCALAR(-1))), .apply = make_rope, .condition = is_rotation },
    { "negative",        ROTATED(P(NEGATIVE, UPPER_HALF)),             .apply = make_rope, .condition = is_rotation },
    { "pairs of a split",          PAIRS(SPLIT, VAR(X), VAR(AXIS)),                    .apply = make_split_rope, .condition = is_split_rotation },
    { "pairs of a variadic split", PAIRS(VARIADIC_SPLIT, VAR(X), VAR(AXIS), VAR(LENGTHS)), .apply = make_split_rope, .condition = is_split_rotation },
    { "first columns", P(CONCAT, P(ROPE, LOWER_HALF, VAR(COS), VAR(SIN)), UPPER_HALF),
      .apply = make_part, .condition = is_part },
    { "first columns of heads before tokens",
      P(CONCAT, P(TRANSPOSE, P(ROPE, P(TRANSPOSE, LOWER_HALF, INTS(ORDER)), VAR(COS), VAR(SIN)), INTS(ORDER_BACK)), UPPER_HALF),
      .apply = make_part, .condition = is_part },
    { .name = NULL },
};
/* clang-format on */
