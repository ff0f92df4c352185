/* SPDX-License-Identifier: Apache-2.0
 *
 * Sharing with the application: its OpenCL context, its queue and its memory, which the engine
 * uses; and memory of the engine that the application may use. */
#include <inttypes.h>

#include "runtime/ocl/ocl.h"
#include "runtime/util/memory.h"

/* ---- contexts ---------------------------------------------------------------------------- */

/* Lists the devices of a context; the caller frees *out (xm_free). */
static enum xm_status
list_devices(cl_context context, cl_device_id **out, size_t *n, struct xm_error *err)
{
    size_t bytes = 0;
    cl_int code = clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &bytes);
    cl_device_id *list = code == CL_SUCCESS ? xm_malloc(bytes + 1) : NULL;
    if (code == CL_SUCCESS && !list)
        return xm_no_memory(err, "the devices of a context");
    if (code == CL_SUCCESS)
        code = clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, list, NULL);
    if (code != CL_SUCCESS) {
        xm_free(list);
        return xm_ocl_fail(err, code, "clGetContextInfo", "the devices of the context");
    }
    *out = list;
    *n = bytes / sizeof(*list);
    return XM_OK;
}

static enum xm_status
device_at(cl_context context, uint32_t n, cl_device_id *out, struct xm_error *err)
{
    cl_device_id *list;
    size_t n_devices;
    XM_TRY(list_devices(context, &list, &n_devices, err));
    if (n < n_devices)
        *out = list[n];
    xm_free(list);
    return n < n_devices
               ? XM_OK
               : xm_fail(err, XM_NOT_FOUND,
                         "the OpenCL context has %zu devices, so there is no device %u",
                         n_devices, n);
}

static enum xm_status
check_context(const struct ocl_engine *e, cl_context context, struct xm_error *err)
{
    cl_device_id *list;
    size_t n;
    XM_TRY(list_devices(context, &list, &n, err));
    bool is_there = false;
    for (size_t i = 0; i < n; i++)
        is_there |= list[i] == e->device;
    xm_free(list);
    return is_there ? XM_OK
                    : xm_fail(err, XM_INVALID, "%s is not a device of the OpenCL context",
                              e->base.info.name);
}

/* ---- queues ------------------------------------------------------------------------------ */

struct queue_facts {
    cl_context context;
    cl_device_id device;
    cl_command_queue_properties properties;
};

static enum xm_status
ask_queue(cl_command_queue q, struct queue_facts *out, struct xm_error *err)
{
    *out = (struct queue_facts){0};
    cl_int code = clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(out->context),
                                        &out->context, NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(out->device),
                                     &out->device, NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES, sizeof(out->properties),
                                     &out->properties, NULL);
    return code == CL_SUCCESS
               ? XM_OK
               : xm_ocl_fail(err, code, "clGetCommandQueueInfo", "the shared queue");
}

static enum xm_status
check_queue(const struct ocl_engine *e, const struct queue_facts *q, cl_context context,
            struct xm_error *err)
{
    if (q->context != context)
        return xm_fail(err, XM_INVALID,
                       "the OpenCL queue does not belong to the given OpenCL context");
    if (q->device != e->device)
        return xm_fail(err, XM_INVALID,
                       "the OpenCL queue belongs to another device than %s",
                       e->base.info.name);
    if (e->base.config.profiling && !(q->properties & CL_QUEUE_PROFILING_ENABLE))
        return xm_fail(err, XM_INVALID,
                       "PERF_COUNT is YES, but the OpenCL queue was made without "
                       "CL_QUEUE_PROFILING_ENABLE");
    return XM_OK;
}

bool
xm_ocl_queue_is_out_of_order(void *queue)
{
    struct queue_facts q;
    return ask_queue(queue, &q, NULL) == XM_OK &&
           q.properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
}

/* ---- engines ----------------------------------------------------------------------------- */

enum xm_status
xm_ocl_find_shared(struct xm_shared_cl *share, uint32_t n, size_t *index,
                   struct xm_error *err)
{
    const struct xm_device_info *infos;
    size_t n_devices;
    struct queue_facts q = {0};
    XM_TRY(xm_ocl_list(&infos, &n_devices, err));
    if (share->queue)
        XM_TRY(ask_queue(share->queue, &q, err));
    else
        XM_TRY(device_at(share->context, n, &q.device, err));
    if (!share->context)
        share->context = q.context;
    for (size_t i = 0; i < n_devices; i++) {
        if (xm_ocl_device_at(i)->device == q.device) {
            *index = i;
            return XM_OK;
        }
    }
    return xm_fail(err, XM_NOT_FOUND,
                   "the device of the OpenCL %s is none of the %zu devices that xemoe "
                   "lists; sub-devices cannot be shared",
                   share->queue ? "queue" : "context", n_devices);
}

enum xm_status
xm_ocl_share(struct ocl_engine *e, const struct xm_shared_cl *share, struct xm_error *err)
{
    struct queue_facts q = {0};
    XM_TRY(check_context(e, share->context, err));
    if (share->queue) {
        XM_TRY(ask_queue(share->queue, &q, err));
        XM_TRY(check_queue(e, &q, share->context, err));
        clRetainCommandQueue(share->queue);
        e->shared = share->queue;
        e->shared_measures = q.properties & CL_QUEUE_PROFILING_ENABLE;
        e->shared_is_out_of_order = q.properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    }
    clRetainContext(share->context);
    e->context = share->context;
    return XM_OK;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Allocates memory to share. A cl_mem is not made of host memory here: in a context of several
 * devices only the driver knows where its bytes are. */
enum xm_status
xm_ocl_buffer_create_shared(struct xm_buffer *b, struct xm_error *err)
{
    cl_int code;
    if (!is_cl_mem(b))
        return xm_ocl_create_usm(b, err);
    b->native = clCreateBuffer(ocl_engine(b->engine)->context, CL_MEM_READ_WRITE,
                               b->bytes, NULL, &code);
    return b->native ? XM_OK : xm_ocl_fail_alloc(b, code, "clCreateBuffer", err);
}

/* Makes the temporary cl_mem. The caller releases it as soon as the commands are enqueued: OpenCL
 * keeps it until they have ended. */
static cl_mem
make_between(const struct ocl_transfer *t, cl_int *code)
{
    return clCreateBuffer(ocl_engine(t->buffer->engine)->context, CL_MEM_READ_WRITE,
                          t->bytes, NULL, code);
}

static cl_int
keep_order(const struct ocl_transfer *t)
{
    return t->has_barriers ? clEnqueueBarrierWithWaitList(t->queue, 0, NULL, NULL)
                           : CL_SUCCESS;
}

cl_int
xm_ocl_read_mem(const struct ocl_transfer *t, void *to)
{
    cl_int code;
    if (!t->buffer->is_hidden)
        return clEnqueueReadBuffer(t->queue, t->buffer->native, t->is_blocking, t->offset,
                                   t->bytes, to, 0, NULL, t->event);
    cl_mem between = make_between(t, &code);
    if (!between)
        return code;
    code = clEnqueueCopyBuffer(t->queue, t->buffer->native, between, t->offset, 0,
                               t->bytes, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = keep_order(t);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(t->queue, between, t->is_blocking, 0, t->bytes, to, 0,
                                   NULL, t->event);
    clReleaseMemObject(between);
    return code;
}

cl_int
xm_ocl_write_mem(const struct ocl_transfer *t, const void *from)
{
    cl_int code;
    if (!t->buffer->is_hidden)
        return clEnqueueWriteBuffer(t->queue, t->buffer->native, t->is_blocking,
                                    t->offset, t->bytes, from, 0, NULL, t->event);
    cl_mem between = make_between(t, &code);
    if (!between)
        return code;
    code = clEnqueueWriteBuffer(t->queue, between, t->is_blocking, 0, t->bytes, from, 0,
                                NULL, NULL);
    if (code == CL_SUCCESS)
        code = keep_order(t);
    if (code == CL_SUCCESS)
        code = clEnqueueCopyBuffer(t->queue, between, t->buffer->native, 0, t->offset,
                                   t->bytes, 0, NULL, t->event);
    clReleaseMemObject(between);
    return code;
}

static enum xm_status
fail_small(uint64_t needs, uint64_t has, struct xm_error *err)
{
    return xm_fail(err, XM_INVALID,
                   "the shared memory has %" PRIu64 " bytes, the tensor needs %" PRIu64,
                   has, needs);
}

static enum xm_status
wrap_cl_mem(struct xm_buffer *b, struct xm_error *err)
{
    cl_context context = NULL;
    cl_mem_object_type type = 0;
    cl_mem_flags flags = 0;
    size_t bytes = 0;
    cl_int code =
        clGetMemObjectInfo(b->native, CL_MEM_CONTEXT, sizeof(context), &context, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(b->native, CL_MEM_TYPE, sizeof(type), &type, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(b->native, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(b->native, CL_MEM_FLAGS, sizeof(flags), &flags, NULL);
    b->is_hidden =
        flags & (CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY);
    if (code != CL_SUCCESS)
        return xm_ocl_fail(err, code, "clGetMemObjectInfo", "the shared memory");
    if (context != ocl_engine(b->engine)->context)
        return xm_fail(err, XM_INVALID,
                       "the shared memory belongs to another OpenCL context");
    if (type != CL_MEM_OBJECT_BUFFER)
        return xm_fail(err, XM_INVALID, "the shared memory is an image, not a buffer");
    if (bytes < b->bytes)
        return fail_small(b->bytes, bytes, err);
    code = clRetainMemObject(b->native);
    return code == CL_SUCCESS
               ? XM_OK
               : xm_ocl_fail(err, code, "clRetainMemObject", "the shared memory");
}

static enum xm_status
kind_of_usm(cl_unified_shared_memory_type_intel type, enum xm_memory_kind *kind)
{
    switch (type) {
    case CL_MEM_TYPE_HOST_INTEL:
        *kind = XM_MEMORY_USM_HOST;
        return XM_OK;
    case CL_MEM_TYPE_DEVICE_INTEL:
        *kind = XM_MEMORY_USM_DEVICE;
        return XM_OK;
    case CL_MEM_TYPE_SHARED_INTEL:
        *kind = XM_MEMORY_USM_SHARED;
        return XM_OK;
    default:
        return XM_INVALID;
    }
}

static enum xm_status
wrap_usm(struct xm_buffer *b, struct xm_error *err)
{
    const struct ocl_engine *e = ocl_engine(b->engine);
    cl_unified_shared_memory_type_intel type = 0;
    void *base = NULL;
    size_t bytes = 0;
    cl_int code = e->usm.info(e->context, b->native, CL_MEM_ALLOC_TYPE_INTEL,
                              sizeof(type), &type, NULL);
    if (code == CL_SUCCESS)
        code = e->usm.info(e->context, b->native, CL_MEM_ALLOC_BASE_PTR_INTEL,
                           sizeof(base), &base, NULL);
    if (code == CL_SUCCESS)
        code = e->usm.info(e->context, b->native, CL_MEM_ALLOC_SIZE_INTEL, sizeof(bytes),
                           &bytes, NULL);
    if (code != CL_SUCCESS)
        return xm_ocl_fail(err, code, "clGetMemAllocInfoINTEL", "the shared memory");
    if (kind_of_usm(type, &b->kind) != XM_OK)
        return xm_fail(err, XM_INVALID,
                       "the shared pointer is not USM of the OpenCL context");
    const uint64_t before = (uint64_t)((char *)b->native - (char *)base);
    if (bytes - before < b->bytes)
        return fail_small(b->bytes, bytes - before, err);
    b->host = b->kind == XM_MEMORY_USM_DEVICE ? NULL : b->native;
    return XM_OK;
}

enum xm_status
xm_ocl_buffer_wrap(struct xm_buffer *b, struct xm_error *err)
{
    return is_cl_mem(b) ? wrap_cl_mem(b, err) : wrap_usm(b, err);
}
