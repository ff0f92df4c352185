/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves constant factors of columns behind the products that they are part of.
 *
 *     (a c) b   ->   (a b) c
 *     (a c) d   ->   a (c d)
 *     a / c     ->   a (1 / c)
 *     (y r) c   ->   (y c) r
 *
 * a, b: values of one shape. c, d: constants with a number for each column, or for each column and
 * expert, [E,1,N]. r: one number for each row, [E,..,1]. Weight compression (AWQ) multiplies a part
 * of a gated unit by such a constant; after this pass the unit is act(gate) up again, followed by
 * the factor.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { A, B, C, D, PRODUCT };
/* most elements of a constant that is a product of two */
enum { MOST_ELEMENTS = 4 * 1024 * 1024 };

/* Whether v is a float constant with several numbers that is the same for all rows. */
static bool
is_factor(const struct xm_value *v)
{
    const struct xm_shape *s = &v->type.shape;
    uint64_t n;
    if (v->node->op != XM_OP_CONST || !xm_element_is_float(v->type.element) ||
        !xm_element_readable(v->type.element) || s->rank < 1 || s->rank > 3 ||
        !xm_static_elements(s, &n) || n < 2)
        return false;
    return s->rank == 1 || xm_dim_is(s->dim[s->rank - 2], 1);
}

static bool
is_const(const struct xm_value *v)
{
    return v->node->op == XM_OP_CONST || v->node->op == XM_OP_WEIGHT;
}

/* Whether all products of the rule have the shape of a. */
static bool
keeps_shape(struct xm_match *m)
{
    return xm_shape_eq(&m->slot[A]->type.shape, &m->root->out[0].type.shape) &&
           xm_shape_eq(&m->slot[A]->type.shape, &m->slot[PRODUCT]->type.shape);
}

static bool
is_of_product(struct xm_match *m)
{
    const struct xm_value *a = m->slot[A], *b = m->slot[B];
    m->why = "the multiplier is not one constant for each column of a product";
    return is_factor(m->slot[C]) && !is_const(a) && !is_const(b) && keeps_shape(m) &&
           xm_shape_eq(&a->type.shape, &b->type.shape);
}

/* The number of elements of c d. */
static uint64_t
elements_of_both(const struct xm_value *c, const struct xm_value *d)
{
    const struct xm_shape *s[] = {&c->type.shape, &d->type.shape};
    uint64_t n = 1;
    for (uint32_t i = 1; i <= 3; i++) { /* counted from the last dimension */
        int64_t most = 1;
        for (uint32_t k = 0; k < 2; k++)
            if (i <= s[k]->rank && s[k]->dim[s[k]->rank - i].n > most)
                most = s[k]->dim[s[k]->rank - i].n;
        if (!xm_mul_size(n, (uint64_t)most, &n))
            return UINT64_MAX;
    }
    return n;
}

static bool
are_two(struct xm_match *m)
{
    m->why = "there are no two multipliers with one constant for each column";
    return is_factor(m->slot[C]) && is_factor(m->slot[D]) && !is_const(m->slot[A]) &&
           keeps_shape(m) && elements_of_both(m->slot[C], m->slot[D]) <= MOST_ELEMENTS;
}

static bool
is_divisor(struct xm_match *m)
{
    m->why = "the divisor is not one constant for each column";
    return is_factor(m->slot[C]) && !is_const(m->slot[A]) &&
           xm_shape_eq(&m->slot[A]->type.shape, &m->root->out[0].type.shape);
}

/* Whether r is the routing of an expert block, a reshaped value, and not the factor of a norm. */
static bool
is_behind_weights(struct xm_match *m)
{
    const struct xm_value *r = m->slot[B];
    m->why = "the multiplier does not follow a multiplication by routing weights";
    return is_factor(m->slot[C]) && !is_const(m->slot[A]) && !is_const(r) &&
           keeps_shape(m) && r->type.shape.rank == m->slot[A]->type.shape.rank &&
           (r->node->op == XM_OP_RESHAPE || r->node->op == XM_OP_UNSQUEEZE) &&
           xm_last_dim(r) == 1 && xm_last_dim(m->slot[A]) != 1;
}

static struct xm_value *
joined(struct xm_builder *b, struct xm_match *m)
{
    return xm_const_of(b, xm_op2(b, XM_OP_MULTIPLY, m->slot[C], m->slot[D]));
}

static struct xm_value *
reciprocal(struct xm_builder *b, struct xm_match *m)
{
    struct xm_value *one = xm_const_float(b, m->slot[C]->type.element, 1.0f);
    return xm_const_of(b, xm_op2(b, XM_OP_DIVIDE, one, m->slot[C]));
}

/* clang-format off */
const struct xm_rule xm_rules_hoist_factors[] = {
    { "a / c",   P(DIVIDE, VAR(A), WEIGHT(C)),
                 P(MULTIPLY, VAR(A), MAKE(reciprocal)), .condition = is_divisor },
    { "(a c) d", P(MULTIPLY, PN(PRODUCT, MULTIPLY, VAR(A), WEIGHT(C)), WEIGHT(D)),
                 P(MULTIPLY, VAR(A), MAKE(joined)), .condition = are_two },
    { "(a c) b", P(MULTIPLY, PN(PRODUCT, MULTIPLY, VAR(A), WEIGHT(C)), VAR(B)),
                 P(MULTIPLY, P(MULTIPLY, VAR(A), VAR(B)), VAR(C)), .condition = is_of_product },
    { "(y r) c", P(MULTIPLY, PN(PRODUCT, MULTIPLY, VAR(A), VAR(B)), WEIGHT(C)),
                 P(MULTIPLY, P(MULTIPLY, VAR(A), VAR(C)), VAR(B)), .condition = is_behind_weights },
    { .name = NULL },
};
/* clang-format on */
