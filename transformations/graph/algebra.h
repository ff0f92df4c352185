/* SPDX-License-Identifier: Apache-2.0
 *
 * Algebraic properties of a node, from its op, attributes and operands: the operands in which it is
 * linear, and the layouts of operands and results over several devices.
 *
 * Passes rely on both, so tests check each claim by evaluation; a rule that is not sure claims
 * less. A stored weight is an operand like others, but a node is claimed to be linear in an operand
 * of a product only if both factors are activations.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_ALGEBRA_H
#define XM_TRANSFORMATIONS_GRAPH_ALGEBRA_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Linearity of one result f; bit i is operand i, and bit 63 stands for all operands from 63 on. */
struct xm_linearity {
    /* operands of f(a + b) = f(a) + f(b), the others held fixed */
    uint64_t alone;
    /* operands for which it holds together: f(a + c, b + d) = f(a,b) + f(c,d) */
    uint64_t jointly;
    /* Operands of f(a + b) + f(0) = f(a) + f(b), the others held fixed, where each element of f
     * also depends on at most one element of the operand. Partial sums of the operand can then be
     * added up after f instead of before it, for example after a reshape or a scaling. */
    uint64_t carried;
};
/* Returns in which operands result `result` of n is linear; all zero: nothing is known. */
struct xm_linearity xm_node_linearity(const struct xm_node *n, uint32_t result);

static inline bool
xm_has_operand(uint64_t operands, uint32_t i)
{
    return operands >> (i < 63 ? i : 63) & 1;
}

enum xm_layout_kind {
    XM_MIRRORED, /* each device has the whole value  */
    /* each device has a part along `dim`, in the order of devices, cut at multiples of `grain` */
    XM_SPLIT,
    XM_PARTIAL, /* each device has a summand of full size; the value is their sum */
    XM_FIRST,   /* the first device has the whole value, the others lack it */
    /* a target shape (of a reshape), whose element `dim` is the size of the device's part */
    XM_SIZES
};
struct xm_layout {
    enum xm_layout_kind kind;
    uint32_t dim;
    int64_t grain; /* elements, 1 or more; for SPLIT */
};

/* Returns the attention node that writes the state which attention n reads: n itself or an earlier
 * one; NULL: none. */
const struct xm_node *xm_attention_writer(const struct xm_node *n);

/* Gives the k-th assignment of layouts, k from 0, to the operands, in[n_in], and results,
 * out[n_out], of a node. It is consistent: if each device applies the node to its part of the
 * operands, it gets its part of the results. In assignment 0 all layouts are mirrored. An attention
 * that does not write its state is split as the node that writes the state; but if there is only
 * one head of keys, the state is whole. Attributes that repeat the size of a split dimension (inter
 * of a moe), or say which part it is (first_expert, own_experts), must be changed to those of the
 * part. False: there are only k assignments. */
bool xm_node_layouts(const struct xm_node *n, uint32_t k, struct xm_layout *in,
                     struct xm_layout *out);

#ifdef __cplusplus
}
#endif
#endif
