/* SPDX-License-Identifier: Apache-2.0
 *
 * The router's matrix product, which gives the logits of the experts.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_ROUTER_PRODUCT_H
#define XM_TRANSFORMATIONS_PASSES_ROUTER_PRODUCT_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For n, a router or a block of experts: the matrix product that computes its logits, or the values
 * from which its expert ids are chosen. NULL: there is none. */
struct xm_node *xm_router_product(const struct xm_node *n);
/* Whether n is a norm, or a row chain, which may contain one. */
bool xm_is_norm(const struct xm_node *n);
/* Whether n, a matmul or a gather, reads a weight node, whose elements it then converts itself. */
bool xm_reads_weight(const struct xm_node *n);

#ifdef __cplusplus
}
#endif
#endif
