/* SPDX-License-Identifier: Apache-2.0
 *
 * For the passes that make `linear` nodes: recognises a product with a stored matrix, whether it is
 * a matmul or a linear node.
 */
#ifndef XM_TRANSFORMATIONS_REWRITE_LINEAR_NODE_H
#define XM_TRANSFORMATIONS_REWRITE_LINEAR_NODE_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether n computes x W^T with a weight W [N,K], with or without bias, and nothing else. */
bool xm_is_linear(const struct xm_node *n);
/* Gets the operands of a node for which xm_is_linear holds, in the order of a linear node with one
 * segment; absent ones are xm_none. */
void xm_linear_operands(struct xm_graph *g, const struct xm_node *n,
                        struct xm_value *in[XM_LINEAR_BIAS + 1]);

#ifdef __cplusplus
}
#endif
#endif
