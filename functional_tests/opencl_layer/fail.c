/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer in which one call of the driver fails:
 *
 *   OPENCL_LAYERS=libxm_opencl_fail.so XM_OPENCL_FAIL=CALL:N[:CODE] program…
 *
 * The N-th call of the function CALL in a process, counted from 1, returns CODE, or
 * CL_OUT_OF_RESOURCES, and is not passed on. All other calls are.
 *
 *   OPENCL_LAYERS=libxm_opencl_fail.so XM_OPENCL_OMIT=KERNEL program…
 *
 * Launches of the kernel KERNEL succeed without running, so that its results are wrong.
 *
 * Deliberately not done: extension functions, queries, and OpenCL functions that xemoe does not
 * call.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functional_tests/opencl_layer/layer_info.h"

static const cl_icd_dispatch *below; /* the driver, or the next layer */

static struct {
    char call[64];
    unsigned long nth; /* 0: no call fails */
    cl_int code;
    atomic_ulong seen; /* calls of this function so far */
} fault;

/* Counts the call; returns whether it is the one to fail. */
static bool
fails(const char *call)
{
    return fault.nth && strcmp(call, fault.call) == 0 &&
           atomic_fetch_add(&fault.seen, 1) + 1 == fault.nth;
}

/* Defines a layer function that returns a status. */
#define CALL(name, parameters, arguments)                                                \
    static cl_int CL_API_CALL own_##name parameters                                      \
    {                                                                                    \
        return fails(#name) ? fault.code : below->name arguments;                        \
    }
/* Defines a layer function that returns an object, and its status in its last parameter `code`. */
#define CREATE(type, name, parameters, arguments)                                        \
    static type CL_API_CALL own_##name parameters                                        \
    {                                                                                    \
        if (!fails(#name))                                                               \
            return below->name arguments;                                                \
        if (code)                                                                        \
            *code = fault.code;                                                          \
        return NULL;                                                                     \
    }

CREATE(cl_context, clCreateContext,
       (const cl_context_properties *list, cl_uint n, const cl_device_id *devices,
        void(CL_CALLBACK *fn)(const char *, const void *, size_t, void *), void *ctx,
        cl_int *code),
       (list, n, devices, fn, ctx, code))
CREATE(cl_command_queue, clCreateCommandQueue,
       (cl_context c, cl_device_id d, cl_command_queue_properties bits, cl_int *code),
       (c, d, bits, code))
CREATE(cl_command_queue, clCreateCommandQueueWithProperties,
       (cl_context c, cl_device_id d, const cl_queue_properties *list, cl_int *code),
       (c, d, list, code))
CREATE(cl_mem, clCreateBuffer,
       (cl_context c, cl_mem_flags flags, size_t bytes, void *host, cl_int *code),
       (c, flags, bytes, host, code))
CREATE(cl_mem, clCreateSubBuffer,
       (cl_mem b, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
        cl_int *code),
       (b, flags, type, info, code))
CREATE(cl_program, clCreateProgramWithSource,
       (cl_context c, cl_uint n, const char **texts, const size_t *bytes, cl_int *code),
       (c, n, texts, bytes, code))
CREATE(cl_kernel, clCreateKernel, (cl_program p, const char *name, cl_int *code),
       (p, name, code))
CREATE(void *, clEnqueueMapBuffer,
       (cl_command_queue q, cl_mem b, cl_bool blocking, cl_map_flags flags, size_t offset,
        size_t bytes, cl_uint n, const cl_event *list, cl_event *event, cl_int *code),
       (q, b, blocking, flags, offset, bytes, n, list, event, code))
CALL(clBuildProgram,
     (cl_program p, cl_uint n, const cl_device_id *devices, const char *options,
      void(CL_CALLBACK *fn)(cl_program, void *), void *ctx),
     (p, n, devices, options, fn, ctx))
CALL(clSetKernelArg, (cl_kernel k, cl_uint i, size_t bytes, const void *value),
     (k, i, bytes, value))
static bool
is_omitted(cl_kernel k)
{
    char name[128] = "";
    const char *omitted = getenv("XM_OPENCL_OMIT");
    return omitted &&
           below->clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL) ==
               CL_SUCCESS &&
           strcmp(name, omitted) == 0;
}

/* A marker takes the place of an omitted launch, so that its event exists. */
static cl_int CL_API_CALL
own_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dim,
                           const size_t *offset, const size_t *global,
                           const size_t *local, cl_uint n, const cl_event *list,
                           cl_event *event)
{
    if (fails("clEnqueueNDRangeKernel"))
        return fault.code;
    if (is_omitted(k))
        return below->clEnqueueMarkerWithWaitList(q, n, list, event);
    return below->clEnqueueNDRangeKernel(q, k, dim, offset, global, local, n, list,
                                         event);
}
CALL(clEnqueueReadBuffer,
     (cl_command_queue q, cl_mem b, cl_bool blocking, size_t offset, size_t bytes,
      void *to, cl_uint n, const cl_event *list, cl_event *event),
     (q, b, blocking, offset, bytes, to, n, list, event))
CALL(clEnqueueWriteBuffer,
     (cl_command_queue q, cl_mem b, cl_bool blocking, size_t offset, size_t bytes,
      const void *from, cl_uint n, const cl_event *list, cl_event *event),
     (q, b, blocking, offset, bytes, from, n, list, event))
CALL(clEnqueueCopyBuffer,
     (cl_command_queue q, cl_mem from, cl_mem to, size_t at, size_t to_at, size_t bytes,
      cl_uint n, const cl_event *list, cl_event *event),
     (q, from, to, at, to_at, bytes, n, list, event))
CALL(clEnqueueFillBuffer,
     (cl_command_queue q, cl_mem b, const void *pattern, size_t pattern_bytes,
      size_t offset, size_t bytes, cl_uint n, const cl_event *list, cl_event *event),
     (q, b, pattern, pattern_bytes, offset, bytes, n, list, event))
CALL(clEnqueueUnmapMemObject,
     (cl_command_queue q, cl_mem b, void *at, cl_uint n, const cl_event *list,
      cl_event *event),
     (q, b, at, n, list, event))
CALL(clFinish, (cl_command_queue q), (q))
CALL(clFlush, (cl_command_queue q), (q))
CALL(clWaitForEvents, (cl_uint n, const cl_event *list), (n, list))

/* Reads CALL:N[:CODE]; with any other text no call fails. */
static void
read_fault(void)
{
    const char *text = getenv("XM_OPENCL_FAIL");
    fault.code = CL_OUT_OF_RESOURCES;
    if (!text || sscanf(text, "%63[^:]:%lu:%d", fault.call, &fault.nth, &fault.code) < 2)
        fault.nth = 0;
}

CL_API_ENTRY cl_int CL_API_CALL
clGetLayerInfo(cl_layer_info what, size_t room, void *value, size_t *bytes)
{
    static const char name[] = "xemoe's layer of faults";
    return layer_info(name, sizeof(name), what, room, value, bytes);
}

static cl_icd_dispatch ours;

CL_API_ENTRY cl_int CL_API_CALL
clInitLayer(cl_uint n, const cl_icd_dispatch *target, cl_uint *n_ret,
            const cl_icd_dispatch **layer)
{
    if (n < sizeof(ours) / sizeof(void *))
        return CL_INVALID_VALUE;
    read_fault();
    below = target;
    ours = *target;
    ours.clCreateContext = own_clCreateContext;
    ours.clCreateCommandQueue = own_clCreateCommandQueue;
    ours.clCreateCommandQueueWithProperties = own_clCreateCommandQueueWithProperties;
    ours.clCreateBuffer = own_clCreateBuffer;
    ours.clCreateSubBuffer = own_clCreateSubBuffer;
    ours.clCreateProgramWithSource = own_clCreateProgramWithSource;
    ours.clCreateKernel = own_clCreateKernel;
    ours.clBuildProgram = own_clBuildProgram;
    ours.clSetKernelArg = own_clSetKernelArg;
    ours.clEnqueueNDRangeKernel = own_clEnqueueNDRangeKernel;
    ours.clEnqueueReadBuffer = own_clEnqueueReadBuffer;
    ours.clEnqueueWriteBuffer = own_clEnqueueWriteBuffer;
    ours.clEnqueueCopyBuffer = own_clEnqueueCopyBuffer;
    ours.clEnqueueFillBuffer = own_clEnqueueFillBuffer;
    ours.clEnqueueMapBuffer = own_clEnqueueMapBuffer;
    ours.clEnqueueUnmapMemObject = own_clEnqueueUnmapMemObject;
    ours.clFinish = own_clFinish;
    ours.clFlush = own_clFlush;
    ours.clWaitForEvents = own_clWaitForEvents;
    *n_ret = sizeof(ours) / sizeof(void *);
    *layer = &ours;
    return CL_SUCCESS;
}
