/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary embedding as one operation, on token-major tensors.
 *
 *     x cos + rotate_half(x) sin  ->  transpose(rope(transpose(x), cos, sin))
 *
 *     rotate_half(x) = concat(-x[D/2:], x[:D/2]) on the last axis
 *
 * x is [B,H,T,D], the tables come as [B|1,1,T,D]. rope works on [B,T,H,D] with tables
 * [B|1,T,D]: the transposes around it meet those of the projections and of attention, and
 * cancel (remove_no_ops). Not done: interleaved pairs, tables for only a part of D.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum { X, COS, SIN, CAT, U_FROM, U_TO, U_STEP, U_AXIS, L_FROM, L_TO, L_STEP, L_AXIS };

static bool
is_int(const struct xm_match *m, int slot, int64_t n)
{
    const struct xm_content *c = &m->slot[slot]->content;
    return c->n == 1 && xm_dim_is(c->e[0], n);
}

static bool
is_last_axis(const struct xm_match *m, int slot, int64_t rank)
{
    return is_int(m, slot, rank - 1) || is_int(m, slot, -1);
}

static bool
is_table(const struct xm_shape *table, const struct xm_shape *x)
{
    return table->rank == 4 && xm_dim_is(table->dim[1], 1) &&
           xm_dim_eq(table->dim[3], x->dim[3]) && xm_dim_eq(table->dim[2], x->dim[2]) &&
           (xm_dim_eq(table->dim[0], x->dim[0]) || xm_dim_is(table->dim[0], 1));
}

static bool
is_rotation(struct xm_match *m)
{
    const struct xm_shape *x = &m->slot[X]->type.shape;
    if (x->rank != 4 || !xm_dim_is_const(x->dim[3]) || x->dim[3].n % 2) {
        m->why = "x is not [B,H,T,D] with an even, constant D";
        return false;
    }
    int64_t d = x->dim[3].n;
    int64_t concat_axis = m->slot[CAT]->node->attr.axis.axis;
    const struct xm_content *to = &m->slot[U_TO]->content;
    bool halves = is_int(m, U_FROM, d / 2) && to->n == 1 && xm_dim_is_const(to->e[0]) &&
                  to->e[0].n >= d && is_int(m, U_STEP, 1) && is_last_axis(m, U_AXIS, 4) &&
                  is_int(m, L_FROM, 0) && is_int(m, L_TO, d / 2) &&
                  is_int(m, L_STEP, 1) && is_last_axis(m, L_AXIS, 4) &&
                  (concat_axis == 3 || concat_axis == -1);
    if (!halves)
        m->why = "the slices are not the two halves of the last axis";
    else if (!is_table(&m->slot[COS]->type.shape, x) ||
             !is_table(&m->slot[SIN]->type.shape, x))
        m->why = "the tables are not [B|1,1,T,D]";
    return m->why == NULL;
}

/* [B,1,T,D] without its axis of one. */
static struct xm_value *
drop_axis(struct xm_builder *b, struct xm_value *table)
{
    const struct xm_shape *s = &table->type.shape;
    const struct xm_dim d[3] = {s->dim[0], s->dim[2], s->dim[3]};
    return xm_reshape(b, table, d, 3);
}

static struct xm_value *
make_rope(struct xm_builder *b, struct xm_match *m)
{
    struct xm_value *in[3] = {xm_swap_heads(b, m->slot[X]), drop_axis(b, m->slot[COS]),
                              drop_axis(b, m->slot[SIN])};
    return xm_swap_heads(b, xm_op_build(b, XM_OP_ROPE, NULL, in, 3));
}

/* clang-format off */
#define UPPER_HALF P(SLICE, VAR(X), INTS(U_FROM), INTS(U_TO), INTS(U_STEP), INTS(U_AXIS))
#define LOWER_HALF P(SLICE, VAR(X), INTS(L_FROM), INTS(L_TO), INTS(L_STEP), INTS(L_AXIS))
#define ROTATED(negated) \
    P(ADD, P(MULTIPLY, VAR(X), VAR(COS)), \
           P(MULTIPLY, PN(CAT, CONCAT, negated, LOWER_HALF), VAR(SIN)))

static const struct xm_rule rope_rules[] = {
    { "times minus one", ROTATED(P(MULTIPLY, UPPER_HALF, SCALAR(-1))), NULL, make_rope, is_rotation },
    { "negative",        ROTATED(P(NEGATIVE, UPPER_HALF)),             NULL, make_rope, is_rotation },
};
/* clang-format on */

bool
xm_pass_fuse_rope(struct xm_graph *g, const struct xm_caps *caps)
{
    return xm_rewrite(g, caps, rope_rules, XM_ARRAY_LEN(rope_rules));
}
