/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins a gated linear unit with the products that it multiplies.
 *
 *     glu(x W0^T (+ b0), x W1^T (+ b1))   ->   linear(x, W0, b0, W1, b1) glu
 *     glu(x W0^T (+ b0), e[..,i,:])       ->   linear(x, e, W0, b0) glu slice=i
 *     glu(x W0^T (+ b0), e)               ->   linear(x, e, W0, b0) glu
 *
 * The last form is also used for two products that the device cannot join. Not done: a unit whose
 * gate is no product.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { X, W_GATE, B_GATE, GATE, W_UP, B_UP, UP, FACTOR, SLICE, INDEX, AXIS };

static bool
same_type(struct xm_match *m)
{
    const struct xm_type *gate = &xm_in(m->root, 0)->type, *up = &xm_in(m->root, 1)->type;
    m->why = "the gate and its multiplier differ in type";
    return gate->element == up->element && xm_shape_eq(&gate->shape, &up->shape);
}

/* The slice of the factor, along its last axis but one, that the unit reads; -1: not known. */
static int64_t
slice_of(const struct xm_match *m)
{
    const struct xm_shape *s = &m->slot[FACTOR]->type.shape;
    int64_t i;
    if (s->rank < 2 || !xm_is_axis(m->slot[AXIS], s->rank, s->rank - 2) ||
        xm_value_const_ints(m->slot[INDEX], &i, 1) != 1 ||
        !xm_dim_is_const(s->dim[s->rank - 2]))
        return -1;
    i += i < 0 ? s->dim[s->rank - 2].n : 0;
    return i < s->dim[s->rank - 2].n ? i : -1;
}

static bool
is_slice(struct xm_match *m)
{
    const struct xm_shape *of = &m->slot[FACTOR]->type.shape;
    if (!same_type(m))
        return false;
    m->why = "the multiplier is not a constant slice of the second-last axis";
    return m->slot[SLICE]->node->attr.gather.batch_dims == 0 &&
           !xm_value_is_const(m->slot[FACTOR]) &&
           of->rank == m->slot[SLICE]->type.shape.rank + 1 && slice_of(m) >= 0;
}

static void
set_unit(const struct xm_match *m, union xm_attr *attr)
{
    attr->linear.glu = true;
    attr->linear.activation = m->root->attr.glu.activation;
    attr->linear.slice = m->slot[SLICE] ? slice_of(m) : 0;
}

/* clang-format off */
#define GATE_PRODUCT LINEAR_OF(GATE, VAR(X), VAR(W_GATE), MAYBE(B_GATE))
#define UNIT(...)    N(GATE, LINEAR, __VA_ARGS__), .attr = set_unit, .keeps_name = true
const struct xm_rule xm_rules_fuse_linear_glu[] = {
    { "two products", P(GLU, GATE_PRODUCT, LINEAR_OF(UP, VAR(X), VAR(W_UP), MAYBE(B_UP))),
      UNIT(AT(XM_LINEAR_W + XM_LINEAR_SEGMENT, VAR(W_UP)), AT(XM_LINEAR_BIAS + XM_LINEAR_SEGMENT, VAR(B_UP))),
      .condition = same_type },
    { "slice", P(GLU, GATE_PRODUCT, PS(SLICE, GATHER, VAR(FACTOR), INTS(INDEX), VAR(AXIS))),
      UNIT(AT(XM_LINEAR_FACTOR, VAR(FACTOR))), .condition = is_slice },
    { "factor", P(GLU, GATE_PRODUCT, VAR(FACTOR)),
      UNIT(AT(XM_LINEAR_FACTOR, VAR(FACTOR))), .condition = same_type },
    { .name = NULL },
};
/* clang-format on */
