/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer that counts a program's calls of the driver:
 *
 *   OPENCL_LAYERS=libxm_opencl_count.so XM_OPENCL_COUNT=FILE program…
 *
 * At exit FILE holds one JSON object with the numbers of kernels, waits, flushes, builds, arguments
 * set, objects created (kernels, sub-buffers and queues), events created, queues, bytes per kind of
 * memory, and calls that failed. "runs" has one entry for each run: a sequence of commands with at
 * least one kernel, up to the host's next wait. A decoded token is such a run, so its entry shows
 * its waits and flushes, and host_ns, the nanoseconds from the wait before the run to the run's
 * first kernel. "of_queues" has the kernels, waits (except for events), flushes, copies and copied
 * bytes of each queue, in the order of their creation. Not supported: extension functions of more
 * than one platform (the layer calls the last one asked for), and OpenCL functions that xemoe does
 * not call.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "functional_tests/opencl_layer/layer_info.h"

enum {
    MAX_RUNS = 4096,
    MAX_NAMES = 512,
    MAX_BLOCKS = 65536,
    MAX_FAILURES = 16,
    MAX_QUEUES = 64
};

enum memory { CL_MEM, HOST_PTR, USM_HOST, USM_DEVICE, USM_SHARED, N_MEMORY };
static const char *const memory_names[N_MEMORY] = {"cl_mem", "host_ptr", "usm_host",
                                                   "usm_device", "usm_shared"};

enum event {
    KERNEL,
    WAIT,
    FLUSH,
    BUILD,
    COPY,
    ALLOCATION,
    FREE,
    BYTE,
    ARGUMENT,
    OBJECT,
    EVENT,
    HOST_NS,
    N_EVENTS
};
static const char *const event_names[N_EVENTS] = {
    "kernels", "waits", "flushes",   "builds",  "copies", "allocations",
    "frees",   "bytes", "arguments", "objects", "events", "host_ns"};

struct counts {
    uint64_t n[N_EVENTS];
};

struct block {
    void *at; /* NULL: freed */
    uint64_t bytes;
    enum memory kind;
};

static struct {
    pthread_mutex_t lock;
    struct counts all, run; /* run: since the last run ended */
    struct counts runs[MAX_RUNS];
    size_t n_runs;
    uint64_t waited_at; /* when the last wait of the host returned, in ns */
    struct {
        char name[64];
        uint64_t n;
    } names[MAX_NAMES];
    size_t n_names;
    struct block blocks[MAX_BLOCKS]; /* USM */
    size_t n_blocks;
    uint64_t now[N_MEMORY], peak[N_MEMORY], total_now, total_peak, largest;
    uint64_t queues_in_order, queues_out_of_order, queues_profiling;
    struct {
        cl_command_queue queue;
        uint64_t kernels, waits, flushes, copies, copied_bytes;
    } of_queues[MAX_QUEUES];
    size_t n_of_queues;
    struct {
        const char *call;
        cl_int code;
    } failures[MAX_FAILURES];
    uint64_t n_failures;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const cl_icd_dispatch *below; /* the driver, or the next layer */
static cl_icd_dispatch ours;

/* Extension functions of the driver. */
static struct {
    clHostMemAllocINTEL_fn host_alloc;
    clDeviceMemAllocINTEL_fn device_alloc;
    clSharedMemAllocINTEL_fn shared_alloc;
    clMemFreeINTEL_fn free;
    clMemBlockingFreeINTEL_fn blocking_free;
    clEnqueueMemcpyINTEL_fn memcpy;
    clEnqueueMemFillINTEL_fn fill;
    clSetKernelArgMemPointerINTEL_fn set_arg;
} usm;

/* ---- counting ---------------------------------------------------------------------- */

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
add(enum event e, uint64_t n)
{
    seen.all.n[e] += n;
    seen.run.n[e] += n;
    if (e == WAIT)
        seen.waited_at = now_ns();
    if (e != WAIT || seen.run.n[KERNEL] == 0)
        return;
    if (seen.n_runs < MAX_RUNS)
        seen.runs[seen.n_runs++] = seen.run;
    seen.run = (struct counts){{0}};
}

/* Counts a command of a queue, and the bytes that it copies. A new queue may have the handle of an
 * earlier one that was released. */
static void
add_of_queue(cl_command_queue q, enum event e, uint64_t bytes)
{
    pthread_mutex_lock(&seen.lock);
    size_t i = seen.n_of_queues;
    while (i > 0 && seen.of_queues[i - 1].queue != q)
        i--;
    if (i-- > 0) {
        seen.of_queues[i].kernels += e == KERNEL;
        seen.of_queues[i].waits += e == WAIT;
        seen.of_queues[i].flushes += e == FLUSH;
        seen.of_queues[i].copies += e == COPY;
        seen.of_queues[i].copied_bytes += bytes;
    }
    pthread_mutex_unlock(&seen.lock);
}

/* Counts the result of a call and returns it. */
static cl_int
note(const char *call, cl_int code)
{
    pthread_mutex_lock(&seen.lock);
    if (code != CL_SUCCESS) {
        if (seen.n_failures < MAX_FAILURES) {
            seen.failures[seen.n_failures].call = call;
            seen.failures[seen.n_failures].code = code;
        }
        seen.n_failures++;
    }
    pthread_mutex_unlock(&seen.lock);
    return code;
}

static cl_int
note_event(const char *call, cl_int code, enum event e)
{
    pthread_mutex_lock(&seen.lock);
    add(e, 1);
    pthread_mutex_unlock(&seen.lock);
    return note(call, code);
}

/* Counts a command of kind e and its result, and an event if the command has made one; `made` is
 * the command's event argument, which may be NULL. Returns `code`. */
static cl_int
note_command(const char *call, cl_int code, enum event e, const cl_event *made)
{
    if (made && code == CL_SUCCESS)
        note_event(call, code, EVENT);
    return note_event(call, code, e);
}

/* Counts a copy, and a wait if the call blocks the host until the copy is done. */
static cl_int
note_copy(const char *call, cl_int code, cl_command_queue q, size_t bytes,
          cl_bool blocking, const cl_event *made)
{
    note_command(call, code, COPY, made);
    add_of_queue(q, COPY, bytes);
    if (blocking) {
        note_event(call, CL_SUCCESS, WAIT);
        add_of_queue(q, WAIT, 0);
    }
    return code;
}

static void
count_bytes(enum memory kind, uint64_t bytes)
{
    add(ALLOCATION, 1);
    seen.now[kind] += bytes;
    if (seen.now[kind] > seen.peak[kind])
        seen.peak[kind] = seen.now[kind];
    if (kind == HOST_PTR) /* memory of the caller */
        return;
    add(BYTE, bytes);
    seen.total_now += bytes;
    if (seen.total_now > seen.total_peak)
        seen.total_peak = seen.total_now;
    if (bytes > seen.largest)
        seen.largest = bytes;
}

static void
uncount_bytes(enum memory kind, uint64_t bytes)
{
    seen.now[kind] -= bytes;
    if (kind != HOST_PTR)
        seen.total_now -= bytes;
}

/* ---- kernels, waits ---------------------------------------------------------------- */

static void
count_name(cl_kernel kernel)
{
    char name[64] = {0};
    size_t i = 0;
    below->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name) - 1, name, NULL);
    while (i < seen.n_names && strcmp(seen.names[i].name, name) != 0)
        i++;
    if (i == MAX_NAMES)
        return;
    if (i == seen.n_names)
        memcpy(seen.names[seen.n_names++].name, name, sizeof(name));
    seen.names[i].n++;
}

static cl_int CL_API_CALL
enqueue_kernel(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
               const size_t *global, const size_t *local, cl_uint n_wait,
               const cl_event *wait, cl_event *event)
{
    pthread_mutex_lock(&seen.lock);
    if (seen.run.n[KERNEL] == 0 && seen.waited_at)
        add(HOST_NS, now_ns() - seen.waited_at);
    count_name(k);
    pthread_mutex_unlock(&seen.lock);
    add_of_queue(q, KERNEL, 0);
    return note_command("clEnqueueNDRangeKernel",
                        below->clEnqueueNDRangeKernel(q, k, dim, offset, global, local,
                                                      n_wait, wait, event),
                        KERNEL, event);
}

static cl_int CL_API_CALL
finish(cl_command_queue q)
{
    add_of_queue(q, WAIT, 0);
    return note_event("clFinish", below->clFinish(q), WAIT);
}

static cl_int CL_API_CALL
flush(cl_command_queue q)
{
    add_of_queue(q, FLUSH, 0);
    return note_event("clFlush", below->clFlush(q), FLUSH);
}

static cl_int CL_API_CALL
enqueue_marker(cl_command_queue q, cl_uint n_wait, const cl_event *wait, cl_event *event)
{
    const cl_int code = below->clEnqueueMarkerWithWaitList(q, n_wait, wait, event);
    return event && code == CL_SUCCESS
               ? note_event("clEnqueueMarkerWithWaitList", code, EVENT)
               : note("clEnqueueMarkerWithWaitList", code);
}

static cl_int CL_API_CALL
wait_for_events(cl_uint n, const cl_event *list)
{
    return note_event("clWaitForEvents", below->clWaitForEvents(n, list), WAIT);
}

static cl_int CL_API_CALL
set_arg(cl_kernel k, cl_uint i, size_t bytes, const void *value)
{
    return note_event("clSetKernelArg", below->clSetKernelArg(k, i, bytes, value),
                      ARGUMENT);
}

static cl_int CL_API_CALL
set_arg_pointer(cl_kernel k, cl_uint i, const void *value)
{
    return note_event("clSetKernelArgMemPointerINTEL", usm.set_arg(k, i, value),
                      ARGUMENT);
}

static cl_kernel CL_API_CALL
create_kernel(cl_program p, const char *name, cl_int *code)
{
    cl_int own;
    cl_kernel kernel = below->clCreateKernel(p, name, &own);
    note_event("clCreateKernel", own, OBJECT);
    if (code)
        *code = own;
    return kernel;
}

/* ---- copies ------------------------------------------------------------------------ */

static cl_int CL_API_CALL
enqueue_read(cl_command_queue q, cl_mem src, cl_bool blocking, size_t offset,
             size_t bytes, void *dst, cl_uint n_wait, const cl_event *wait,
             cl_event *event)
{
    return note_copy("clEnqueueReadBuffer",
                     below->clEnqueueReadBuffer(q, src, blocking, offset, bytes, dst,
                                                n_wait, wait, event),
                     q, bytes, blocking, event);
}

static cl_int CL_API_CALL
enqueue_write(cl_command_queue q, cl_mem dst, cl_bool blocking, size_t offset,
              size_t bytes, const void *src, cl_uint n_wait, const cl_event *wait,
              cl_event *event)
{
    return note_copy("clEnqueueWriteBuffer",
                     below->clEnqueueWriteBuffer(q, dst, blocking, offset, bytes, src,
                                                 n_wait, wait, event),
                     q, bytes, blocking, event);
}

static void *CL_API_CALL
enqueue_map(cl_command_queue q, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
            size_t offset, size_t bytes, cl_uint n_wait, const cl_event *wait,
            cl_event *event, cl_int *code)
{
    cl_int own;
    void *at = below->clEnqueueMapBuffer(q, buffer, blocking, flags, offset, bytes,
                                         n_wait, wait, event, &own);
    note_copy("clEnqueueMapBuffer", own, q, 0, blocking, event);
    if (code)
        *code = own;
    return at;
}

static cl_int CL_API_CALL
enqueue_copy(cl_command_queue q, cl_mem src, cl_mem dst, size_t src_offset,
             size_t dst_offset, size_t bytes, cl_uint n_wait, const cl_event *wait,
             cl_event *event)
{
    return note_copy("clEnqueueCopyBuffer",
                     below->clEnqueueCopyBuffer(q, src, dst, src_offset, dst_offset,
                                                bytes, n_wait, wait, event),
                     q, bytes, CL_FALSE, event);
}

static cl_int CL_API_CALL
enqueue_fill(cl_command_queue q, cl_mem dst, const void *pattern, size_t pattern_bytes,
             size_t offset, size_t bytes, cl_uint n_wait, const cl_event *wait,
             cl_event *event)
{
    return note_copy("clEnqueueFillBuffer",
                     below->clEnqueueFillBuffer(q, dst, pattern, pattern_bytes, offset,
                                                bytes, n_wait, wait, event),
                     q, bytes, CL_FALSE, event);
}

static cl_int CL_API_CALL
usm_memcpy(cl_command_queue q, cl_bool blocking, void *dst, const void *src, size_t bytes,
           cl_uint n_wait, const cl_event *wait, cl_event *event)
{
    return note_copy("clEnqueueMemcpyINTEL",
                     usm.memcpy(q, blocking, dst, src, bytes, n_wait, wait, event), q,
                     bytes, blocking, event);
}

static cl_int CL_API_CALL
usm_fill(cl_command_queue q, void *dst, const void *pattern, size_t pattern_bytes,
         size_t bytes, cl_uint n_wait, const cl_event *wait, cl_event *event)
{
    return note_copy("clEnqueueMemFillINTEL",
                     usm.fill(q, dst, pattern, pattern_bytes, bytes, n_wait, wait, event),
                     q, bytes, CL_FALSE, event);
}

/* ---- memory ------------------------------------------------------------------------ */

static void CL_CALLBACK
buffer_dies(cl_mem mem, void *bytes)
{
    (void)mem;
    pthread_mutex_lock(&seen.lock);
    uncount_bytes(CL_MEM, (uint64_t)(uintptr_t)bytes);
    pthread_mutex_unlock(&seen.lock);
}

static void CL_CALLBACK
host_buffer_dies(cl_mem mem, void *bytes)
{
    (void)mem;
    pthread_mutex_lock(&seen.lock);
    uncount_bytes(HOST_PTR, (uint64_t)(uintptr_t)bytes);
    pthread_mutex_unlock(&seen.lock);
}

static cl_mem CL_API_CALL
create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
              cl_int *code)
{
    cl_int own;
    bool on_host = flags & CL_MEM_USE_HOST_PTR;
    cl_mem mem = below->clCreateBuffer(context, flags, bytes, host, &own);
    note("clCreateBuffer", own);
    if (mem) {
        pthread_mutex_lock(&seen.lock);
        count_bytes(on_host ? HOST_PTR : CL_MEM, bytes);
        pthread_mutex_unlock(&seen.lock);
        below->clSetMemObjectDestructorCallback(
            mem, on_host ? host_buffer_dies : buffer_dies, (void *)(uintptr_t)bytes);
    }
    if (code)
        *code = own;
    return mem;
}

static cl_mem CL_API_CALL
create_sub_buffer(cl_mem root, cl_mem_flags flags, cl_buffer_create_type type,
                  const void *region, cl_int *code)
{
    cl_int own;
    cl_mem mem = below->clCreateSubBuffer(root, flags, type, region, &own);
    note_event("clCreateSubBuffer", own, OBJECT);
    if (code)
        *code = own;
    return mem;
}

static void *
note_usm(const char *call, void *at, size_t bytes, enum memory kind, cl_int own,
         cl_int *code)
{
    note(call, own);
    pthread_mutex_lock(&seen.lock);
    if (at) {
        size_t i = 0;
        while (i < seen.n_blocks && seen.blocks[i].at)
            i++;
        count_bytes(kind, bytes);
        if (i < MAX_BLOCKS) {
            seen.blocks[i] = (struct block){at, bytes, kind};
            seen.n_blocks += i == seen.n_blocks;
        }
    }
    pthread_mutex_unlock(&seen.lock);
    if (code)
        *code = own;
    return at;
}

static void *CL_API_CALL
usm_host_alloc(cl_context c, const cl_mem_properties_intel *properties, size_t bytes,
               cl_uint align, cl_int *code)
{
    cl_int own;
    void *at = usm.host_alloc(c, properties, bytes, align, &own);
    return note_usm("clHostMemAllocINTEL", at, bytes, USM_HOST, own, code);
}

static void *CL_API_CALL
usm_device_alloc(cl_context c, cl_device_id d, const cl_mem_properties_intel *properties,
                 size_t bytes, cl_uint align, cl_int *code)
{
    cl_int own;
    void *at = usm.device_alloc(c, d, properties, bytes, align, &own);
    return note_usm("clDeviceMemAllocINTEL", at, bytes, USM_DEVICE, own, code);
}

static void *CL_API_CALL
usm_shared_alloc(cl_context c, cl_device_id d, const cl_mem_properties_intel *properties,
                 size_t bytes, cl_uint align, cl_int *code)
{
    cl_int own;
    void *at = usm.shared_alloc(c, d, properties, bytes, align, &own);
    return note_usm("clSharedMemAllocINTEL", at, bytes, USM_SHARED, own, code);
}

static void
forget(const void *at)
{
    pthread_mutex_lock(&seen.lock);
    for (size_t i = 0; at && i < seen.n_blocks; i++) {
        if (seen.blocks[i].at == at) {
            uncount_bytes(seen.blocks[i].kind, seen.blocks[i].bytes);
            seen.blocks[i].at = NULL;
            break;
        }
    }
    pthread_mutex_unlock(&seen.lock);
}

static cl_int CL_API_CALL
usm_free(cl_context c, void *at)
{
    forget(at);
    return note_event("clMemFreeINTEL", usm.free(c, at), FREE);
}

static cl_int CL_API_CALL
usm_blocking_free(cl_context c, void *at)
{
    forget(at);
    return note_event("clMemBlockingFreeINTEL", usm.blocking_free(c, at), FREE);
}

/* ---- programs, queues -------------------------------------------------------------- */

static cl_int CL_API_CALL
build_program(cl_program p, cl_uint n, const cl_device_id *devices, const char *options,
              void(CL_CALLBACK *done)(cl_program, void *), void *ctx)
{
    /* a program made from a binary has no source and is not compiled */
    size_t source = 0;
    below->clGetProgramInfo(p, CL_PROGRAM_SOURCE, 0, NULL, &source);
    cl_int code = below->clBuildProgram(p, n, devices, options, done, ctx);
    return source > 1 ? note_event("clBuildProgram", code, BUILD)
                      : note("clBuildProgram", code);
}

static void
count_queue(cl_command_queue q)
{
    cl_command_queue_properties bits = 0;
    if (q)
        below->clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES, sizeof(bits), &bits, NULL);
    pthread_mutex_lock(&seen.lock);
    add(OBJECT, q != NULL);
    if (q && seen.n_of_queues < MAX_QUEUES)
        seen.of_queues[seen.n_of_queues++].queue = q;
    if (bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        seen.queues_out_of_order++;
    else if (q)
        seen.queues_in_order++;
    if (bits & CL_QUEUE_PROFILING_ENABLE)
        seen.queues_profiling++;
    pthread_mutex_unlock(&seen.lock);
}

static cl_command_queue CL_API_CALL
create_queue(cl_context c, cl_device_id d, cl_command_queue_properties bits, cl_int *code)
{
    cl_int own;
    cl_command_queue q = below->clCreateCommandQueue(c, d, bits, &own);
    note("clCreateCommandQueue", own);
    count_queue(q);
    if (code)
        *code = own;
    return q;
}

static cl_command_queue CL_API_CALL
create_queue_with(cl_context c, cl_device_id d, const cl_queue_properties *list,
                  cl_int *code)
{
    cl_int own;
    cl_command_queue q = below->clCreateCommandQueueWithProperties(c, d, list, &own);
    note("clCreateCommandQueueWithProperties", own);
    count_queue(q);
    if (code)
        *code = own;
    return q;
}

/* ---- extension functions ----------------------------------------------------------- */

static const struct {
    const char *name;
    void *driver; /* where the driver's function is kept: a function pointer */
    void (*own)(void);
} extensions[] = {
#define EXTENSION(name, member, own)                                                     \
    {                                                                                    \
        name, &usm.member, (void (*)(void))own                                           \
    }
    EXTENSION("clHostMemAllocINTEL", host_alloc, usm_host_alloc),
    EXTENSION("clDeviceMemAllocINTEL", device_alloc, usm_device_alloc),
    EXTENSION("clSharedMemAllocINTEL", shared_alloc, usm_shared_alloc),
    EXTENSION("clMemFreeINTEL", free, usm_free),
    EXTENSION("clMemBlockingFreeINTEL", blocking_free, usm_blocking_free),
    EXTENSION("clEnqueueMemcpyINTEL", memcpy, usm_memcpy),
    EXTENSION("clEnqueueMemFillINTEL", fill, usm_fill),
    EXTENSION("clSetKernelArgMemPointerINTEL", set_arg, set_arg_pointer),
#undef EXTENSION
};

static void *CL_API_CALL
extension_function(cl_platform_id platform, const char *name)
{
    void *driver = below->clGetExtensionFunctionAddressForPlatform(platform, name);
    for (size_t i = 0; driver && i < sizeof(extensions) / sizeof(*extensions); i++) {
        if (strcmp(extensions[i].name, name) == 0) {
            memcpy(extensions[i].driver, &driver, sizeof(driver));
            memcpy(&driver, &extensions[i].own, sizeof(driver));
            break;
        }
    }
    return driver;
}

/* ---- the report -------------------------------------------------------------------- */

static void
print_counts(FILE *f, const struct counts *c)
{
    for (int e = 0; e < N_EVENTS; e++)
        fprintf(f, "%s\"%s\": %" PRIu64, e ? ", " : "", event_names[e], c->n[e]);
}

static void
print_memory(FILE *f)
{
    fprintf(f, ",\n \"memory\": {");
    for (int k = 0; k < N_MEMORY; k++)
        fprintf(f, "\"%s\": %" PRIu64 ", \"%s_peak\": %" PRIu64 ", ", memory_names[k],
                seen.now[k], memory_names[k], seen.peak[k]);
    fprintf(f,
            "\"total\": %" PRIu64 ", \"total_peak\": %" PRIu64 ", \"largest\": %" PRIu64
            "}",
            seen.total_now, seen.total_peak, seen.largest);
}

static void
print_lists(FILE *f)
{
    fprintf(f, ",\n \"failures\": %" PRIu64 ", \"failed\": [", seen.n_failures);
    for (uint64_t i = 0; i < seen.n_failures && i < MAX_FAILURES; i++)
        fprintf(f, "%s{\"call\": \"%s\", \"code\": %d}", i ? ", " : "",
                seen.failures[i].call, seen.failures[i].code);
    fprintf(f, "],\n \"names\": {");
    for (size_t i = 0; i < seen.n_names; i++)
        fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "", seen.names[i].name,
                seen.names[i].n);
    fprintf(f, "},\n \"runs\": [");
    for (size_t i = 0; i < seen.n_runs; i++) {
        fprintf(f, "%s\n  {", i ? "," : "");
        print_counts(f, &seen.runs[i]);
        fprintf(f, "}");
    }
    fprintf(f, "]");
}

static void
print_queues(FILE *f)
{
    fprintf(f, ",\n \"of_queues\": [");
    for (size_t i = 0; i < seen.n_of_queues; i++)
        fprintf(f,
                "%s\n  {\"kernels\": %" PRIu64 ", \"waits\": %" PRIu64
                ", \"flushes\": %" PRIu64 ", \"copies\": %" PRIu64
                ", \"copied_bytes\": %" PRIu64 "}",
                i ? "," : "", seen.of_queues[i].kernels, seen.of_queues[i].waits,
                seen.of_queues[i].flushes, seen.of_queues[i].copies,
                seen.of_queues[i].copied_bytes);
    fprintf(f, "]");
}

static void
report(void)
{
    const char *path = getenv("XM_OPENCL_COUNT");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    pthread_mutex_lock(&seen.lock);
    fprintf(f, "{");
    print_counts(f, &seen.all);
    fprintf(f,
            ",\n \"queues\": {\"in_order\": %" PRIu64 ", \"out_of_order\": %" PRIu64
            ", \"profiling\": %" PRIu64 "}",
            seen.queues_in_order, seen.queues_out_of_order, seen.queues_profiling);
    print_memory(f);
    print_lists(f);
    print_queues(f);
    fprintf(f, "}\n");
    pthread_mutex_unlock(&seen.lock);
    fclose(f);
}

/* ---- the layer --------------------------------------------------------------------- */

CL_API_ENTRY cl_int CL_API_CALL
clGetLayerInfo(cl_layer_info what, size_t room, void *value, size_t *bytes)
{
    static const char name[] = "xemoe's counting layer";
    return layer_info(name, sizeof(name), what, room, value, bytes);
}

CL_API_ENTRY cl_int CL_API_CALL
clInitLayer(cl_uint n, const cl_icd_dispatch *target, cl_uint *n_ret,
            const cl_icd_dispatch **layer)
{
    if (n < sizeof(ours) / sizeof(void *))
        return CL_INVALID_VALUE;
    below = target;
    ours = *target;
    ours.clEnqueueNDRangeKernel = enqueue_kernel;
    ours.clFinish = finish;
    ours.clFlush = flush;
    ours.clWaitForEvents = wait_for_events;
    ours.clEnqueueMarkerWithWaitList = enqueue_marker;
    ours.clSetKernelArg = set_arg;
    ours.clCreateKernel = create_kernel;
    ours.clEnqueueReadBuffer = enqueue_read;
    ours.clEnqueueWriteBuffer = enqueue_write;
    ours.clEnqueueMapBuffer = enqueue_map;
    ours.clEnqueueCopyBuffer = enqueue_copy;
    ours.clEnqueueFillBuffer = enqueue_fill;
    ours.clCreateBuffer = create_buffer;
    ours.clCreateSubBuffer = create_sub_buffer;
    ours.clBuildProgram = build_program;
    ours.clCreateCommandQueue = create_queue;
    ours.clCreateCommandQueueWithProperties = create_queue_with;
    ours.clGetExtensionFunctionAddressForPlatform = extension_function;
    *n_ret = sizeof(ours) / sizeof(void *);
    *layer = &ours;
    atexit(report);
    return CL_SUCCESS;
}
