/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine on one OpenCL device: its context and its callbacks.
 */
#include <string.h>

#include "runtime/ocl/ocl.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

static void
destroy_engine(struct xm_engine *base)
{
    struct ocl_engine *e = ocl_engine(base);
    if (atomic_load(&base->cache_bytes) > 0)
        xm_kernel_cache_trim(base->config.cache_dir, (uint64_t)XM_KERNEL_CACHE_MIB << 20);
    if (e->upload)
        clReleaseCommandQueue(e->upload);
    if (e->shared)
        clReleaseCommandQueue(e->shared);
    if (e->context)
        clReleaseContext(e->context);
    pthread_mutex_destroy(&e->upload_lock);
    xm_engine_fini(base);
    xm_free(e);
}

static void *
cl_context_of(const struct xm_engine *e)
{
    return ocl_engine(e)->context;
}

static void *
cl_device_of(const struct xm_engine *e)
{
    return ocl_engine(e)->device;
}

static bool
has_usm(const struct xm_engine *e)
{
    return ocl_engine(e)->usm.host_alloc != NULL;
}

static const struct xm_engine_ops ocl_ops = {
    .destroy = destroy_engine,
    .cl_context = cl_context_of,
    .cl_device = cl_device_of,
    .has_usm = has_usm,
    .buffer_create = xm_ocl_buffer_create,
    .buffer_from_host = xm_ocl_buffer_from_host,
    .buffer_create_shared = xm_ocl_buffer_create_shared,
    .buffer_wrap = xm_ocl_buffer_wrap,
    .buffer_view = xm_ocl_buffer_view,
    .buffer_release = xm_ocl_buffer_release,
    .kernel_create = xm_ocl_kernel_create,
    .kernel_destroy = xm_ocl_kernel_destroy,
    .kernel_bytes = xm_ocl_kernel_bytes,
    .queue_create = xm_ocl_queue_create,
    .queue_destroy = xm_ocl_queue_destroy,
    .run = xm_ocl_queue_run,
    .bind = xm_ocl_queue_bind,
    .unbind = xm_ocl_queue_unbind,
    .rebind = xm_ocl_queue_rebind,
    .run_bound = xm_ocl_queue_run_bound,
    .run_host = xm_ocl_queue_run_host,
    .write = xm_ocl_queue_write,
    .read = xm_ocl_queue_read,
    .copy = xm_ocl_queue_copy,
    .fill = xm_ocl_queue_fill,
    .send = xm_ocl_queue_send,
    .flush = xm_ocl_queue_flush,
    .keep_pace = xm_ocl_queue_keep_pace,
    .finish = xm_ocl_queue_finish,
    .queue_native = xm_ocl_queue_native,
    .measuring = &xm_ocl_measuring,
};

enum xm_status
xm_ocl_create_queue(struct ocl_engine *e, bool profiling, bool out_of_order,
                    cl_command_queue *out, struct xm_error *err)
{
    cl_command_queue_properties bits = 0;
    if (profiling)
        bits |= CL_QUEUE_PROFILING_ENABLE;
    if (out_of_order)
        bits |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    const char *call = "clCreateCommandQueue";
    cl_int code;
    if (strncmp(e->base.info.version, "OpenCL 1", 8) == 0) {
        *out = clCreateCommandQueue(e->context, e->device, bits, &code);
    } else {
        const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
        call = "clCreateCommandQueueWithProperties";
        *out = clCreateCommandQueueWithProperties(e->context, e->device, list, &code);
    }
    if (!*out)
        return xm_ocl_fail(err, code, call, "device %s", e->base.info.name);
    return XM_OK;
}

/* Loads a function; `function` points to a function pointer. The address is copied by memcpy,
 * because C does not convert an object pointer to a function pointer. */
static bool
load_function(cl_platform_id platform, const char *name, void *function)
{
    void *address = clGetExtensionFunctionAddressForPlatform(platform, name);
    memcpy(function, &address, sizeof(address));
    return address != NULL;
}

/* Loads the functions of USM. GPUs use USM because its memory is faster to bind than a cl_mem and
 * can be divided by pointer arithmetic. CPU devices use plain host memory, which can do the same
 * with fewer failures; they need USM only for memory shared with the application. */
static void
load_usm(struct ocl_engine *e)
{
    struct ocl_usm u;
    cl_platform_id p = e->platform;
    if (!xm_device_really_has(&e->base.info, XM_CAP_USM_HOST | XM_CAP_USM_DEVICE))
        return;
    if (load_function(p, "clHostMemAllocINTEL", &u.host_alloc) &&
        load_function(p, "clDeviceMemAllocINTEL", &u.device_alloc) &&
        load_function(p, "clMemBlockingFreeINTEL", &u.free) &&
        load_function(p, "clSetKernelArgMemPointerINTEL", &u.set_arg) &&
        load_function(p, "clEnqueueMemcpyINTEL", &u.memcpy) &&
        load_function(p, "clEnqueueMemFillINTEL", &u.fill) &&
        load_function(p, "clGetMemAllocInfoINTEL", &u.info))
        e->usm = u;
}

static enum xm_status
create_context(struct ocl_engine *e, struct xm_error *err)
{
    cl_int code;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)e->platform, 0};
    e->context = clCreateContext(properties, 1, &e->device, NULL, NULL, &code);
    if (!e->context)
        return xm_ocl_fail(err, code, "clCreateContext", "device %s", e->base.info.name);
    return XM_OK;
}

static enum xm_status
open_device(struct ocl_engine *e, const struct xm_shared_cl *share, struct xm_error *err)
{
    XM_TRY(share ? xm_ocl_share(e, share, err) : create_context(e, err));
    load_usm(e);
    return xm_ocl_create_queue(e, false, false, &e->upload, err);
}

enum xm_status
xm_ocl_engine_create(size_t index, const struct xm_config *config,
                     const struct xm_shared_cl *share, struct xm_engine **out,
                     struct xm_error *err)
{
    const struct xm_device_info *infos;
    size_t n;
    XM_TRY(xm_ocl_list(&infos, &n, err));
    struct ocl_engine *e = xm_calloc(1, sizeof(*e));
    if (!e)
        return xm_no_memory(err, "device %s", infos[index].name);
    enum xm_status status =
        xm_engine_init(&e->base, &ocl_ops, &infos[index], config, err);
    if (status != XM_OK) {
        xm_free(e);
        return status;
    }
    if (pthread_mutex_init(&e->upload_lock, NULL)) {
        xm_engine_fini(&e->base);
        xm_free(e);
        return xm_no_memory(err, "a lock");
    }
    xm_ocl_ask_for_tiles(&e->base.info);
    e->platform = xm_ocl_device_at(index)->platform;
    e->device = xm_ocl_device_at(index)->device;
    struct ocl_signals signals;
    xm_ocl_keep_signals(&signals);
    status = open_device(e, share, err);
    xm_ocl_restore_signals(&signals);
    if (status != XM_OK) {
        destroy_engine(&e->base);
        return status;
    }
    *out = &e->base;
    return XM_OK;
}
