/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped memory of oneDNN: rows of several matrices behind one another, with a list on the
 * device that says where each ends. An experiment of recent versions: absent unless oneDNN was
 * built with ONEDNN_EXPERIMENTAL_GROUPED_MEMORY.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_GROUPED_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_GROUPED_H

#include <dnnl.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

bool xm_onednn_has_grouped_memory(void);
/* [rows,cols] of `groups` groups; memory for it has two handles, the rows and where they end. */
dnnl_status_t xm_onednn_grouped_desc(dnnl_memory_desc_t *out, uint64_t rows,
                                     uint64_t cols, uint64_t groups,
                                     dnnl_data_type_t type);
/* The argument that says how many rows a group has at most, for dnnl_memory_destroy. */
dnnl_status_t xm_onednn_most_rows(dnnl_exec_arg_t *out, uint64_t rows);

#ifdef __cplusplus
}
#endif
#endif
