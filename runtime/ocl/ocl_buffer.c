/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory over OpenCL.
 *
 *   CPU devices      aligned memory of xm_malloc, wrapped in a cl_mem: the host uses it in place
 *   GPUs with USM    usm_device; usm_host for buffers that the host accesses often
 *   other GPUs       cl_mem
 *
 * Views are sub-buffers of a cl_mem, or pointers into USM. No allocation is larger than
 * the device's limit, so that no driver extension is needed: callers divide larger ones
 * (runtime/plan.h).
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/ocl/ocl.h"
#include "runtime/util/memory.h"

enum { HOST_ALIGN = 4096 }; /* alignment of the memory that we allocate for CPU devices */

enum xm_status
xm_ocl_fail_alloc(const struct xm_buffer *b, cl_int code, const char *call,
                  struct xm_error *err)
{
    return xm_ocl_fail(err, code, call,
                       "%" PRIu64 " bytes on %s (largest allocation %" PRIu64 " bytes)",
                       b->bytes, b->engine->info.name, b->engine->info.max_alloc_bytes);
}

static enum xm_status
wrap_host(struct xm_buffer *b, void *host, cl_mem_flags flags, struct xm_error *err)
{
    cl_int code;
    b->native = clCreateBuffer(ocl_engine(b->engine)->context,
                               flags | CL_MEM_USE_HOST_PTR, b->bytes, host, &code);
    if (!b->native)
        return xm_ocl_fail_alloc(b, code, "clCreateBuffer", err);
    b->host = host;
    return XM_OK;
}

/* Frees the memory of a cl_mem: the driver calls it when the last command that uses it is done,
 * which may be after the buffer was released. */
static void CL_CALLBACK
free_host(cl_mem mem, void *owned)
{
    (void)mem;
    xm_free(owned);
}

static enum xm_status
create_host_visible(struct xm_buffer *b, struct xm_error *err)
{
    void *owned =
        b->bytes <= SIZE_MAX - HOST_ALIGN ? xm_malloc(b->bytes + HOST_ALIGN) : NULL;
    if (!owned)
        return xm_no_memory(err, "a buffer of %" PRIu64 " bytes on %s", b->bytes,
                            b->engine->info.name);
    void *aligned = (void *)(uintptr_t)xm_align_up((uintptr_t)owned, HOST_ALIGN);
    b->kind = XM_MEMORY_CL;
    enum xm_status status = wrap_host(b, aligned, CL_MEM_READ_WRITE, err);
    if (status == XM_OK) {
        cl_int code = clSetMemObjectDestructorCallback(b->native, free_host, owned);
        if (code == CL_SUCCESS)
            return XM_OK;
        clReleaseMemObject(b->native);
        status = xm_ocl_fail_alloc(b, code, "clSetMemObjectDestructorCallback", err);
    }
    xm_free(owned);
    return status;
}

enum xm_status
xm_ocl_create_usm(struct xm_buffer *b, struct xm_error *err)
{
    struct ocl_engine *e = ocl_engine(b->engine);
    bool on_host = b->kind == XM_MEMORY_USM_HOST;
    cl_int code;
    if (on_host)
        b->native = e->usm.host_alloc(e->context, NULL, b->bytes, 0, &code);
    else
        b->native = e->usm.device_alloc(e->context, e->device, NULL, b->bytes, 0, &code);
    b->host = on_host ? b->native : NULL;
    if (!b->native)
        return xm_ocl_fail_alloc(
            b, code, on_host ? "clHostMemAllocINTEL" : "clDeviceMemAllocINTEL", err);
    return XM_OK;
}

enum xm_status
xm_ocl_buffer_create(struct xm_buffer *b, enum xm_buffer_use use, struct xm_error *err)
{
    struct ocl_engine *e = ocl_engine(b->engine);
    if (xm_device_has(&b->engine->info, XM_CAP_HOST_VISIBLE))
        return create_host_visible(b, err);
    b->kind = xm_memory_kind_for(&b->engine->info, use);
    if (e->usm.device_alloc)
        return xm_ocl_create_usm(b, err);
    if (!is_cl_mem(b)) /* the driver lacks some function of USM                   */
        b->kind = use == XM_USE_HOST_WEIGHT ? XM_MEMORY_CL_HOST : XM_MEMORY_CL;
    cl_int code;
    cl_mem_flags flags = CL_MEM_READ_WRITE;
    if (b->kind == XM_MEMORY_CL_HOST)
        flags |= CL_MEM_ALLOC_HOST_PTR;
    b->native = clCreateBuffer(e->context, flags, b->bytes, NULL, &code);
    return b->native ? XM_OK : xm_ocl_fail_alloc(b, code, "clCreateBuffer", err);
}

static enum xm_status
upload(struct xm_buffer *b, const void *bytes, struct xm_error *err)
{
    struct ocl_engine *e = ocl_engine(b->engine);
    if (b->host) {
        memcpy(b->host, bytes, b->bytes);
        return XM_OK;
    }
    cl_int code;
    pthread_mutex_lock(&e->upload_lock);
    if (is_cl_mem(b))
        code = clEnqueueWriteBuffer(e->upload, b->native, CL_TRUE, 0, b->bytes, bytes, 0,
                                    NULL, NULL);
    else
        code =
            e->usm.memcpy(e->upload, CL_TRUE, b->native, bytes, b->bytes, 0, NULL, NULL);
    pthread_mutex_unlock(&e->upload_lock);
    if (code == CL_SUCCESS)
        return XM_OK;
    return xm_ocl_fail(err, code, "an upload", "%" PRIu64 " bytes of weights", b->bytes);
}

enum xm_status
xm_ocl_buffer_from_host(struct xm_buffer *b, enum xm_buffer_use use, const void *bytes,
                        struct xm_error *err)
{
    if (xm_memory_is_shared(b->engine, use, bytes, b->bytes)) {
        b->kind = XM_MEMORY_MAPPED;
        /* The cast drops const: kernels only read this memory. */
        enum xm_status status =
            wrap_host(b, (void *)(uintptr_t)bytes, CL_MEM_READ_ONLY, NULL);
        if (status == XM_OK)
            return XM_OK; /* else the driver cannot pin these pages, so they are copied */
    }
    XM_TRY(xm_ocl_buffer_create(b, use, err));
    enum xm_status status = upload(b, bytes, err);
    if (status != XM_OK)
        xm_ocl_buffer_release(b);
    return status;
}

enum xm_status
xm_ocl_buffer_view(struct xm_buffer *b, struct xm_error *err)
{
    if (!is_cl_mem(b)) {
        b->native = (char *)b->root->native + b->offset;
        return XM_OK;
    }
    const cl_buffer_region region = {b->offset, b->bytes};
    cl_int code;
    b->native = clCreateSubBuffer(b->root->native, 0, CL_BUFFER_CREATE_TYPE_REGION,
                                  &region, &code);
    if (!b->native)
        return xm_ocl_fail(err, code, "clCreateSubBuffer",
                           "%" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64,
                           b->bytes, b->offset, b->root->bytes);
    return XM_OK;
}

void
xm_ocl_buffer_release(struct xm_buffer *b)
{
    struct ocl_engine *e = ocl_engine(b->engine);
    if (is_cl_mem(b))
        clReleaseMemObject(b->native);
    else if (!b->root && !b->is_foreign)
        e->usm.free(e->context, b->native); /* waits for the commands that use it */
}
