/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the matrix product that gives the logits of the experts. */
#ifndef XM_TRANSFORMATIONS_PASSES_ROUTER_PRODUCT_H
#define XM_TRANSFORMATIONS_PASSES_ROUTER_PRODUCT_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the matrix product whose result are the logits from which node n, a router or an expert
 * block, gets its expert ids; NULL: there is none. */
struct xm_node *xm_router_product(const struct xm_node *n);
/* Whether n is a norm, or a row chain, which may contain one. */
bool xm_is_norm(const struct xm_node *n);
/* Whether n is a matmul or a gather that reads a weight node, whose elements it converts itself. */
bool xm_reads_weight(const struct xm_node *n);

#ifdef __cplusplus
}
#endif
#endif
