/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TABLE_ROWS_H
#define XM_TRANSFORMATIONS_GRAPH_TABLE_ROWS_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of rows of the smallest rank-2 table that is indexed with these integers directly
 * (embeddings); 0: none. */
uint64_t xm_value_table_rows(const struct xm_value *ids);

#ifdef __cplusplus
}
#endif
#endif
