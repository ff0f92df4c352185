/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to algebra*.c: the interface of the rules xm_algebra_<algebra>, one for each op
 * (ops.def).
 *
 * A rule states in which operands a result is linear, and enumerates assignments: ways to split the
 * operands and results of an op among devices (algebra.h). Assignments with partial sums of a
 * linear operand, and those of elementwise ops, follow from the others and are enumerated by the
 * caller.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_ALGEBRA_RULES_H
#define XM_TRANSFORMATIONS_GRAPH_ALGEBRA_RULES_H

#include "transformations/graph/algebra.h"

struct xm_algebra {
    const struct xm_node *node;
    uint32_t result;
    struct xm_linearity linear; /* of the result */
    uint32_t k;                 /* number of assignments before the wanted one */
    bool found;                 /* the wanted one was reached                  */
    struct xm_layout *in, *out; /* out: the layouts of operands and results in the wanted
                                 * assignment; NULL: only linearity is wanted  */
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

/* Begins the next assignment; true: it is the wanted one, and all layouts are set to mirrored, so
 * that the rule only sets the split ones. */
bool xm_algebra_next(struct xm_algebra *a);
void xm_algebra_split(struct xm_layout *l, uint32_t dim, int64_t grain);
/* Enumerates the assignments that split one dimension of result 0, except its last `but`
 * dimensions, and the same dimension of those of operands 0 .. n-1 that have it (aligned at the
 * last dimension). */
void xm_algebra_split_elements(struct xm_algebra *a, uint32_t n, uint32_t but);
/* Enumerates the assignments that split one dimension of operand 0 whose bit in `whole` is 0, and
 * the same dimension of operands 1 .. n-1 and of every result. */
void xm_algebra_split_rows(struct xm_algebra *a, uint32_t n, uint32_t whole);

#endif
