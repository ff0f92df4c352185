/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped memory; see onednn_grouped.h.
 */
#include "primitives/onednn/onednn_grouped.h"

bool
xm_onednn_has_grouped_memory(void)
{
    return true;
}

dnnl_status_t
xm_onednn_grouped_desc(dnnl_memory_desc_t *out, uint64_t rows, uint64_t cols,
                       uint64_t groups, dnnl_data_type_t type)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
    return dnnl_memory_desc_create_with_grouped_encoding(out, 2, dims, type, 0,
                                                         (dnnl_dim_t)groups, dnnl_s32);
}

/* oneDNN launches as many work-groups for each group, instead of enough for all rows. */
dnnl_status_t
xm_onednn_most_rows(dnnl_exec_arg_t *out, uint64_t rows)
{
    int32_t value = (int32_t)rows;
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_host_scalar(&desc, dnnl_s32);
    if (status == dnnl_success)
        status = dnnl_memory_create_host_scalar(&out->memory, desc, &value);
    dnnl_memory_desc_destroy(desc);
    out->arg = DNNL_ARG_HINT_MAX_GROUP_SIZE;
    return status;
}
