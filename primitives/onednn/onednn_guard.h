/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of oneDNN that may compile or run a kernel, with C++ exceptions turned into
 * dnnl_runtime_error.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_GUARD_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_GUARD_H

#include <dnnl.h>

#ifdef __cplusplus
extern "C" {
#endif

dnnl_status_t xm_onednn_try_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                     const_dnnl_memory_desc_t x,
                                     const_dnnl_memory_desc_t w,
                                     const_dnnl_memory_desc_t bias,
                                     const_dnnl_memory_desc_t y,
                                     const_dnnl_primitive_attr_t attributes);
dnnl_status_t xm_onednn_try_create(dnnl_primitive_t *out, const_dnnl_primitive_desc_t pd);
dnnl_status_t xm_onednn_try_execute(const_dnnl_primitive_t primitive,
                                    dnnl_stream_t stream, int n_args,
                                    const dnnl_exec_arg_t *args);
/* Calls dnnl_ocl_interop_engine_create with a cl_device_id and a cl_context; dnnl_unimplemented in
 * builds without a GPU engine. */
dnnl_status_t xm_onednn_try_open(dnnl_engine_t *out, void *device, void *context);

#ifdef __cplusplus
}
#endif
#endif
