/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped memory; see onednn_grouped.h.
 */
#include "primitives/onednn/onednn_grouped.h"

#if DNNL_GPU_RUNTIME == DNNL_RUNTIME_OCL
#include <dnnl_ocl.h>
#endif

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

dnnl_status_t
xm_onednn_rows_memory(dnnl_memory_t *out, const_dnnl_memory_desc_t desc,
                      dnnl_engine_t engine, const struct xm_onednn_handle *rows,
                      const struct xm_onednn_handle *ends)
{
    void *handles[] = {rows->at, ends->at};
    if (!ends->at || ends->kind != rows->kind)
        return dnnl_invalid_arguments;
    if (rows->kind == XM_ONEDNN_HOST)
        return dnnl_memory_create_v2(out, desc, engine, 2, handles);
#if DNNL_GPU_RUNTIME == DNNL_RUNTIME_OCL
    return dnnl_ocl_interop_memory_create_v2(
        out, desc, engine,
        rows->kind == XM_ONEDNN_CL ? dnnl_ocl_interop_buffer : dnnl_ocl_interop_usm, 2,
        handles);
#else
    return dnnl_invalid_arguments;
#endif
}

/* With this hint oneDNN launches work-groups for `rows` rows of each group, instead of for all
 * rows. */
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
