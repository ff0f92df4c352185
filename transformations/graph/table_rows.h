/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TABLE_ROWS_H
#define XM_TRANSFORMATIONS_GRAPH_TABLE_ROWS_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the number of rows of the smallest table of rank 2 (embeddings) that the integers `ids`
 * index, perhaps after conversions and reshapes; 0: there is none. */
uint64_t xm_value_table_rows(const struct xm_value *ids);

#ifdef __cplusplus
}
#endif
#endif
