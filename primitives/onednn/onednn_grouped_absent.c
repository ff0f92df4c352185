/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn_grouped.h in builds with a oneDNN without grouped memory.
 */
#include "primitives/onednn/onednn_grouped.h"

bool
xm_onednn_has_grouped_memory(void)
{
    return false;
}

dnnl_status_t
xm_onednn_grouped_desc(dnnl_memory_desc_t *out, uint64_t rows, uint64_t cols,
                       uint64_t groups, dnnl_data_type_t type)
{
    (void)out, (void)rows, (void)cols, (void)groups, (void)type;
    return dnnl_unimplemented;
}

dnnl_status_t
xm_onednn_rows_memory(dnnl_memory_t *out, const_dnnl_memory_desc_t desc,
                      dnnl_engine_t engine, const struct xm_onednn_handle *rows,
                      const struct xm_onednn_handle *ends)
{
    (void)out, (void)desc, (void)engine, (void)rows, (void)ends;
    return dnnl_unimplemented;
}

dnnl_status_t
xm_onednn_most_rows(dnnl_exec_arg_t *out, uint64_t rows)
{
    (void)out, (void)rows;
    return dnnl_unimplemented;
}
