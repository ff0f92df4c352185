/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to algebra*.c: the interface of the rules, functions xm_algebra_<algebra>. ops.def names
 * the rule of each op.
 *
 * A rule states in which operands a result is linear, and enumerates assignments: ways to split the
 * operands and results of an op among devices (algebra.h). The caller adds the assignments that
 * follow for every op: partial sums of a linear operand, and splits of elementwise ops.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_ALGEBRA_RULES_H
#define XM_TRANSFORMATIONS_GRAPH_ALGEBRA_RULES_H

#include "transformations/graph/algebra.h"

struct xm_algebra {
    const struct xm_node *node;
    uint32_t result;
    struct xm_linearity linear; /* linearity of `result` */
    uint32_t k;                 /* number of assignments before the wanted one */
    bool found;                 /* the wanted one was reached                  */
    /* Where the layouts of operands and results of the wanted assignment go; NULL: only linearity
     * is wanted. */
    struct xm_layout *in, *out;
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

/* Begins the next assignment. True: it is the wanted one, and all layouts are mirrored, so that the
 * rule only sets those that are split. */
bool xm_algebra_next(struct xm_algebra *a);
/* Makes a layout split along `dim`, in multiples of `grain`. */
void xm_algebra_split(struct xm_layout *l, uint32_t dim, int64_t grain);
/* Enumerates assignments for elementwise ops: each splits one dimension of result 0, but none of
 * its last `but` dimensions, and the same dimension (aligned at the last one) of those of operands
 * 0 … n-1 that have it. */
void xm_algebra_split_elements(struct xm_algebra *a, uint32_t n, uint32_t but);
/* Enumerates assignments that split one dimension of operand 0, the same dimension of operands 1 …
 * n-1 and of every result. Dimensions whose bit in `whole` is 1 are not split. */
void xm_algebra_split_rows(struct xm_algebra *a, uint32_t n, uint32_t whole);

#endif
