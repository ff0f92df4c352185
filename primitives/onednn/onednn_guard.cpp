/* SPDX-License-Identifier: Apache-2.0
 *
 * The only C++ of the library. oneDNN's C functions let the exceptions of its code generators
 * and of its reader of the driver's binaries through (its GPU engine throws where a binary is
 * not what it expects), and C cannot catch them: they would end the process. Nothing but the
 * catching is done here.
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
