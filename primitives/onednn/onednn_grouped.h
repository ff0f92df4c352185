/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped memory of oneDNN: the rows of several matrices one after another, with a list on the
 * device of where each matrix ends. It is experimental: absent unless oneDNN was built with
 * ONEDNN_EXPERIMENTAL_GROUPED_MEMORY.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_GROUPED_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_GROUPED_H

#include "primitives/onednn/onednn_matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

bool xm_onednn_has_grouped_memory(void);
/* Creates the descriptor of [rows,cols], divided into `groups` groups. */
dnnl_status_t xm_onednn_grouped_desc(dnnl_memory_desc_t *out, uint64_t rows,
                                     uint64_t cols, uint64_t groups,
                                     dnnl_data_type_t type);
/* Creates memory for such a descriptor from the rows and the list of where their groups end; both
 * must be handles of one kind. */
dnnl_status_t xm_onednn_rows_memory(dnnl_memory_t *out, const_dnnl_memory_desc_t desc,
                                    dnnl_engine_t engine,
                                    const struct xm_onednn_handle *rows,
                                    const struct xm_onednn_handle *ends);
/* Sets *out to the argument that tells oneDNN the most rows of a group. The caller destroys its
 * memory. */
dnnl_status_t xm_onednn_most_rows(dnnl_exec_arg_t *out, uint64_t rows);

#ifdef __cplusplus
}
#endif
#endif
