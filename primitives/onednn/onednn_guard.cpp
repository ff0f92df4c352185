/* SPDX-License-Identifier: Apache-2.0
 *
 * The only C++ of the library. oneDNN's C functions let C++ exceptions through: those of its code
 * generators, and of its GPU engine, which throws when a binary of the driver is not what it
 * expects. C cannot catch exceptions, so they would end the process. This file only catches them.
 */
#include "primitives/onednn/onednn_guard.h"

#include <dnnl_config.h>
#if DNNL_GPU_RUNTIME == DNNL_RUNTIME_OCL
#include <dnnl_ocl.h>
#endif

dnnl_status_t
xm_onednn_try_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                       const_dnnl_memory_desc_t x, const_dnnl_memory_desc_t w,
                       const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t y,
                       const_dnnl_primitive_attr_t attributes)
try {
    return dnnl_matmul_primitive_desc_create(out, engine, x, w, bias, y, attributes);
} catch (...) {
    return dnnl_runtime_error;
}

dnnl_status_t
xm_onednn_try_create(dnnl_primitive_t *out, const_dnnl_primitive_desc_t pd)
try {
    return dnnl_primitive_create(out, pd);
} catch (...) {
    return dnnl_runtime_error;
}

dnnl_status_t
xm_onednn_try_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int n_args,
                      const dnnl_exec_arg_t *args)
try {
    return dnnl_primitive_execute(primitive, stream, n_args, args);
} catch (...) {
    return dnnl_runtime_error;
}

dnnl_status_t
xm_onednn_try_open(dnnl_engine_t *out, void *device, void *context)
try {
#if DNNL_GPU_RUNTIME == DNNL_RUNTIME_OCL
    return dnnl_ocl_interop_engine_create(out, static_cast<cl_device_id>(device),
                                          static_cast<cl_context>(context));
#else
    (void)out, (void)device, (void)context;
    return dnnl_unimplemented;
#endif
} catch (...) {
    return dnnl_runtime_error;
}
