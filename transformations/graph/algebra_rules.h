/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to algebra*.c: what a rule xm_algebra_<algebra> (ops.def) is asked and answers.
 *
 * A rule says in which operands `result` is linear, and lists assignments in which something is
 * split. Those with partial sums of a linear operand, and those of elementwise ops, follow from
 * the rest and are listed for it.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_ALGEBRA_RULES_H
#define XM_TRANSFORMATIONS_GRAPH_ALGEBRA_RULES_H

#include "transformations/graph/algebra.h"

struct xm_algebra {
    const struct xm_node *node;
    uint32_t result;
    struct xm_linearity linear; /* of the result */
    uint32_t k;                 /* how many assignments come before the wanted one */
    bool found;
    struct xm_layout *in, *out; /* NULL: only linearity is asked */
};

#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    void xm_algebra_##algebra(struct xm_algebra *a);
#include "transformations/graph/ops.def"

static inline const struct xm_shape *
xm_algebra_shape(const struct xm_algebra *a, uint32_t i)
{
    return &xm_in(a->node, i)->type.shape;
}

static inline bool
xm_algebra_has(const struct xm_algebra *a, uint32_t i)
{
    return i < a->node->n_in && !xm_is_none(xm_in(a->node, i));
}

/* Begins one more assignment; true: it is the wanted one, and all is mirrored so far. */
bool xm_algebra_next(struct xm_algebra *a);
void xm_algebra_split(struct xm_layout *l, uint32_t dim, int64_t grain);
/* Assignments that split one dimension of result 0 but its last `but`, and of operands 0 .. n-1
 * where they have it, aligned at the last dimension. */
void xm_algebra_split_elements(struct xm_algebra *a, uint32_t n, uint32_t but);
/* Assignments that split one dimension of operand 0 that is not in `whole` (bits), and the same
 * dimension of operands 1 .. n-1 and of every result. */
void xm_algebra_split_rows(struct xm_algebra *a, uint32_t n, uint32_t whole);

#endif
