/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TABLE_ROWS_H
#define XM_TRANSFORMATIONS_GRAPH_TABLE_ROWS_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of the smallest table of two dimensions that these integers choose rows of as they are
 * (embeddings); 0: none. */
uint64_t xm_value_table_rows(const struct xm_value *ids);

#ifdef __cplusplus
}
#endif
#endif
