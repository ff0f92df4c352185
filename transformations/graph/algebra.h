/* SPDX-License-Identifier: Apache-2.0
 *
 * Algebraic properties of a node, from its op, attributes and operands: the operands in which it is
 * linear, and the layouts of operands and results over several devices.
 *
 * Passes rely on both, so tests check each claim by evaluation; a rule that is not sure claims
 * less. Stored weights are operands like others, but a node is claimed linear in an operand of a
 * product only where both factors are activations.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_ALGEBRA_H
#define XM_TRANSFORMATIONS_GRAPH_ALGEBRA_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Linearity of one result f; bit i is operand i, and bit 63 stands for all operands from 63 on. */
struct xm_linearity {
    uint64_t alone; /* f(a + b) = f(a) + f(b), the other operands held fixed           */
    /* the same of all these together: f(a + c, b + d) = f(a,b) + f(c,d) */
    uint64_t jointly;
    /* f(a + b) + f(0) = f(a) + f(b), the others held fixed, and each element of f reads at most
     * one element of the operand. Partial sums of the operand may therefore be added after f, as
     * through a reshape or a scaling. */
    uint64_t carried;
};
/* The operands in which a result of n is linear; all zero where nothing is known. */
struct xm_linearity xm_node_linearity(const struct xm_node *n, uint32_t result);

static inline bool
xm_has_operand(uint64_t operands, uint32_t i)
{
    return operands >> (i < 63 ? i : 63) & 1;
}

enum xm_layout_kind {
    XM_MIRRORED, /* every device has the whole value */
    XM_SPLIT,    /* parts along `dim`, device after device, cut at multiples of `grain` */
    XM_PARTIAL,  /* each device has a summand of full size; their sum is the value */
    XM_FIRST,    /* the first device has the whole value, the others lack it */
    XM_SIZES     /* a target shape: its element `dim` is the part's size */
};
struct xm_layout {
    enum xm_layout_kind kind;
    uint32_t dim;
    int64_t grain; /* elements, 1 or more; of SPLIT */
};

/* The attention that writes the state which attention n reads: n itself, or one before it; NULL:
 * there is none. */
const struct xm_node *xm_attention_writer(const struct xm_node *n);

/* The k-th consistent assignment of layouts, k from 0, to the operands, in[n_in], and results,
 * out[n_out]: if each device applies the node to its part of the operands, it gets its part of the
 * results. In assignment 0 all are mirrored. An attention that does not write its state is split
 * where the state's writer is, but with one head of keys, where the state is whole. Attributes that
 * repeat the size of a split dimension (a moe's inter), or say which part it is (its first_expert
 * and own_experts), are those of the part. False: there are only
 * k assignments. */
bool xm_node_layouts(const struct xm_node *n, uint32_t k, struct xm_layout *in,
                     struct xm_layout *out);

#ifdef __cplusplus
}
#endif
#endif
