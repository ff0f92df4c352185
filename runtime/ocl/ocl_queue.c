/* SPDX-License-Identifier: Apache-2.0
 *
 * A command queue. Commands take effect in the order of the calls; in an out-of-order queue a
 * barrier after each command ensures that. A queue may belong to the application, which enqueues
 * commands between ours; if that queue is out of order, there is also a barrier before each
 * command.
 *
 * Memory that the host can address is written and read by the host itself, so that a token costs
 * one wait: its inputs are written while the queue is empty, its results are read after the queue
 * has finished.
 *
 * A driver with files of its own (XM_CAP_DRIVER_FILES) compiles when a kernel is first launched
 * with a local size. Such a launch runs alone, on a separate queue that measures, so that the time
 * of the compiler is known and the new code can be stored in the cache.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/ocl/ocl.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

struct ocl_queue {
    struct xm_queue base;
    cl_command_queue queue;
    cl_command_queue first; /* queue for launches that compile; NULL: none yet */
    bool out_of_order, is_shared;
    bool busy;     /* commands were enqueued since the last wait */
    cl_event pace; /* marker that the last xm_queue_keep_pace enqueued    */
    /* between xm_queue_begin_native and _end_native: a marker before the application's commands;
     * NULL: none */
    cl_event native;
    struct ocl_times times;
};

static struct ocl_queue *
ocl_queue(const struct xm_queue *q)
{
    return (struct ocl_queue *)q;
}

/* Identifies the command that is enqueued now. */
static struct ocl_launch_id
id_of(const struct ocl_queue *q, const char *name, const char *defines)
{
    return (struct ocl_launch_id){q->base.label, name, defines};
}

/* Where a copy, fill or host function should put its event; NULL: it is not measured. add_event is
 * called after enqueueing. */
static cl_event *
event_for(struct ocl_queue *q, const char *name, cl_event *event)
{
    const struct ocl_launch_id id = id_of(q, name, "");
    *event = NULL;
    return q->base.measures && xm_ocl_times_reserve(&q->times, &id) ? event : NULL;
}

static void
add_event(struct ocl_queue *q, const char *name, cl_event event)
{
    const struct ocl_launch_id id = id_of(q, name, "");
    if (event)
        xm_ocl_times_add(&q->times, NULL, event, &id);
}

static const struct ocl_usm *
usm_of(const struct xm_queue *q)
{
    return &ocl_engine(q->engine)->usm;
}

/* Makes the application's queue, which all queues of the engine share, this queue's. */
static void
take_shared(struct ocl_queue *q, const struct ocl_engine *e)
{
    q->queue = e->shared;
    clRetainCommandQueue(q->queue);
    q->is_shared = true;
    q->out_of_order = e->shared_is_out_of_order;
    q->base.measures &= e->shared_measures;
}

enum xm_status
xm_ocl_queue_create(struct xm_engine *base, struct xm_queue **out, struct xm_error *err)
{
    struct ocl_engine *e = ocl_engine(base);
    struct ocl_queue *q = xm_calloc(1, sizeof(*q));
    if (!q)
        return xm_no_memory(err, "a queue of %s", base->info.name);
    q->out_of_order = base->config.queue_type == XM_QUEUE_OUT_OF_ORDER;
    struct ocl_signals signals;
    xm_ocl_keep_signals(&signals);
    q->base.measures = base->config.profiling || xm_debug_on(XM_DEBUG_TIMES);
    enum xm_status status = XM_OK;
    if (e->shared)
        take_shared(q, e);
    else
        status =
            xm_ocl_create_queue(e, q->base.measures, q->out_of_order, &q->queue, err);
    xm_ocl_restore_signals(&signals);
    if (status != XM_OK) {
        xm_free(q);
        return status;
    }
    *out = &q->base;
    return XM_OK;
}

void
xm_ocl_queue_destroy(struct xm_queue *base)
{
    struct ocl_queue *q = ocl_queue(base);
    /* the application's own commands may take long: do not wait for them */
    if (q->busy || !q->is_shared)
        clFinish(q->queue);
    xm_ocl_times_end(&q->times);
    if (q->pace)
        clReleaseEvent(q->pace);
    clReleaseCommandQueue(q->queue);
    if (q->first)
        clReleaseCommandQueue(q->first);
    xm_free(q);
}

/* Called after each command: keeps the order of an out-of-order queue. */
static cl_int
keep_order(struct ocl_queue *q, cl_int code)
{
    q->busy = true;
    if (code != CL_SUCCESS || !q->out_of_order)
        return code;
    return clEnqueueBarrierWithWaitList(q->queue, 0, NULL, NULL);
}

/* Called before each command: waits for commands that the application enqueued. */
static void
await_others(const struct ocl_queue *q)
{
    if (q->is_shared && q->out_of_order)
        clEnqueueBarrierWithWaitList(q->queue, 0, NULL, NULL);
}

static cl_int
set_arg(const struct xm_queue *q, cl_kernel k, cl_uint i, const struct xm_arg *a)
{
    if (a->kind == XM_ARG_LOCAL)
        return clSetKernelArg(k, i, a->bytes, NULL);
    if (a->kind == XM_ARG_SCALAR)
        return clSetKernelArg(k, i, a->bytes, &a->value);
    if (!a->buffer)
        return clSetKernelArg(k, i, sizeof(cl_mem), NULL);
    if (is_cl_mem(a->buffer))
        return clSetKernelArg(k, i, sizeof(cl_mem), &a->buffer->native);
    return usm_of(q)->set_arg(k, i, a->buffer->native);
}

static enum xm_status
check_arg(const struct ocl_kernel *k, uint32_t i, const struct xm_arg *a,
          struct xm_error *err)
{
    static const char *const kinds[] = {"a buffer", "a scalar", "local memory"};
    const struct ocl_arg *fact = &k->args[i];
    if (!fact->known)
        return XM_OK;
    if (fact->kind != a->kind)
        return xm_fail(
            err, XM_INVALID, "kernel '%s': argument %u (%s %s) must be %s, found %s",
            k->base.name, i, fact->type, fact->name, kinds[fact->kind], kinds[a->kind]);
    if (fact->bytes && fact->bytes != a->bytes)
        return xm_fail(err, XM_INVALID,
                       "kernel '%s': argument %u (%s %s) must have %u bytes, found %u",
                       k->base.name, i, fact->type, fact->name, fact->bytes, a->bytes);
    return XM_OK;
}

/* Checks that the parameter has the name that the caller gives argument i. */
static enum xm_status
check_name(const struct ocl_kernel *k, uint32_t i, const struct xm_arg *a,
           struct xm_error *err)
{
    const char *name = k->args[i].name, *suffix = a->suffix ? a->suffix : "";
    size_t n = a->name ? strlen(a->name) : 0;
    if (!a->name || !name[0] ||
        (strncmp(name, a->name, n) == 0 && strcmp(name + n, suffix) == 0))
        return XM_OK;
    return xm_fail(err, XM_INVALID, "kernel '%s': argument %u must be '%s', found '%s%s'",
                   k->base.name, i, name, a->name, suffix);
}

static enum xm_status
bind_arg(const struct xm_queue *q, const struct ocl_kernel *k, cl_kernel to, uint32_t i,
         const struct xm_arg *a, struct xm_error *err)
{
    const cl_int code = set_arg(q, to, i, a);
    return code == CL_SUCCESS
               ? XM_OK
               : xm_ocl_fail(err, code, "clSetKernelArg", "kernel '%s', argument %u (%s)",
                             k->base.name, i, k->args[i].name);
}

/* Checks the arguments and sets them in `to`: the kernel's cl_kernel, or the one of a recorded
 * launch. */
static enum xm_status
bind_args(const struct xm_queue *q, struct ocl_kernel *k, cl_kernel to,
          const struct xm_arg *args, uint32_t n_args, struct xm_error *err)
{
    if (n_args != k->n_args)
        return xm_fail(err, XM_INVALID, "kernel '%s' takes %u arguments, found %u",
                       k->base.name, k->n_args, n_args);
    bool all_named = true;
    for (uint32_t i = 0; i < n_args; i++) {
        XM_TRY(check_arg(k, i, &args[i], err));
        if (!k->named)
            XM_TRY(check_name(k, i, &args[i], err));
        all_named &= args[i].name != NULL;
        XM_TRY(bind_arg(q, k, to, i, &args[i], err));
    }
    k->named =
        all_named; /* one check is enough: a caller always passes the same names  */
    return XM_OK;
}

/* Enqueues a launch; `event` NULL: no event. */
static cl_int
launch_on(cl_command_queue queue, cl_kernel kernel, const struct xm_launch *l,
          cl_event *event)
{
    const size_t global[3] = {l->global[0], l->global[1], l->global[2]};
    const size_t local[3] = {l->local[0], l->local[1], l->local[2]};
    return clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local[0] ? local : NULL,
                                  0, NULL, event);
}

static enum xm_status
check_launched(cl_int code, const struct ocl_kernel *k, const struct xm_launch *l,
               struct xm_error *err)
{
    if (code == CL_SUCCESS)
        return XM_OK;
    return xm_ocl_fail(err, code, "clEnqueueNDRangeKernel",
                       "kernel '%s', global %" PRIu64 "x%" PRIu64 "x%" PRIu64
                       ", local %" PRIu64 "x%" PRIu64 "x%" PRIu64,
                       k->base.name, l->global[0], l->global[1], l->global[2],
                       l->local[0], l->local[1], l->local[2]);
}

static enum xm_status
enqueue(struct ocl_queue *q, const struct ocl_kernel *k, cl_kernel bound,
        const struct xm_launch *l, struct xm_error *err)
{
    const struct ocl_launch_id id = id_of(q, k->base.name, k->base.defines);
    const bool measure = q->base.measures && xm_ocl_times_reserve(&q->times, &id);
    cl_event event = NULL;
    await_others(q);
    cl_int code = launch_on(q->queue, bound, l, measure ? &event : NULL);
    if (event)
        xm_ocl_times_add(&q->times, NULL, event, &id);
    return check_launched(keep_order(q, code), k, l, err);
}

/* ---- launches of a new kind ---------------------------------------------------------- */

/* The time from the call to the start of the kernel, which is the time of the compiler; 0: not
 * known. */
static uint64_t
waited_ns(cl_event event)
{
    cl_ulong queued = 0, start = 0;
    if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof(queued),
                                &queued, NULL) != CL_SUCCESS ||
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start,
                                NULL) != CL_SUCCESS)
        return 0;
    return start > queued ? start - queued : 0;
}

static bool
builds_at_launch(const struct xm_queue *q)
{
    return xm_device_has(&q->engine->info, XM_CAP_DRIVER_FILES);
}

/* Enqueues a launch for which the driver compiles and waits for it. Returns the code of the wait;
 * *launched: the code of enqueueing. */
static cl_int
launch_alone(const struct ocl_queue *q, const struct ocl_kernel *k,
             const struct xm_launch *l, cl_event *event, cl_int *launched)
{
    struct ocl_handlers handlers;
    xm_ocl_keep_handlers(&handlers);
    *launched = launch_on(q->first, k->kernel, l, event);
    const cl_int code = *launched == CL_SUCCESS ? clFinish(q->first) : *launched;
    xm_ocl_restore_handlers(&handlers);
    return code;
}

static enum xm_status
run_first(struct ocl_queue *q, struct ocl_kernel *k, const struct xm_launch *l,
          struct xm_error *err)
{
    struct ocl_engine *e = ocl_engine(q->base.engine);
    cl_event event = NULL;
    if (!q->first)
        XM_TRY(xm_ocl_create_queue(e, true, false, &q->first, err));
    cl_int code = clFinish(q->queue);
    if (code != CL_SUCCESS)
        return xm_ocl_fail_wait(err, code, "clFinish", "%s", e->base.info.name);
    if (k->program.is_new) /* a loaded program most likely has the code already */
        xm_engine_say_building(&e->base, k->base.name);
    cl_int launched;
    code = launch_alone(q, k, l, &event, &launched);
    XM_TRY(check_launched(launched, k, l, err));
    const uint64_t waited = waited_ns(event);
    const struct ocl_launch_id id = id_of(q, k->base.name, k->base.defines);
    if (q->base.measures && xm_ocl_times_reserve(&q->times, &id))
        xm_ocl_times_add(&q->times, NULL, event, &id);
    else
        clReleaseEvent(event);
    if (code != CL_SUCCESS)
        return xm_ocl_fail_wait(err, code, "clFinish", "%s", e->base.info.name);
    const double start = xm_now();
    if (xm_ocl_program_update(e, &k->program))
        atomic_fetch_add(&e->base.launches_built, 1);
    atomic_fetch_add(&e->base.build_ns, waited + (uint64_t)(1e9 * (xm_now() - start)));
    return XM_OK;
}

enum xm_status
xm_ocl_queue_run(struct xm_queue *base, struct xm_kernel *kernel,
                 const struct xm_arg *args, uint32_t n_args,
                 const struct xm_launch *launch, struct xm_error *err)
{
    struct ocl_kernel *k = (struct ocl_kernel *)kernel;
    pthread_mutex_lock(&k->lock);
    enum xm_status status = bind_args(base, k, k->kernel, args, n_args, err);
    if (status == XM_OK && builds_at_launch(base) &&
        xm_launch_kinds_add(&k->base.launched, launch))
        status = run_first(ocl_queue(base), k, launch, err);
    else if (status == XM_OK)
        status = enqueue(ocl_queue(base), k, k->kernel, launch, err);
    pthread_mutex_unlock(&k->lock);
    return status;
}

/* ---- recorded launches --------------------------------------------------------------- */

/* A recorded launch needs its own cl_kernel, because a cl_kernel holds its arguments. */
enum xm_status
xm_ocl_queue_bind(struct xm_queue *base, struct xm_kernel *kernel,
                  const struct xm_arg *args, uint32_t n_args, void **out,
                  struct xm_error *err)
{
    struct ocl_kernel *k = (struct ocl_kernel *)kernel;
    cl_int code;
    cl_kernel bound = clCreateKernel(k->program.program, k->base.name, &code);
    if (!bound)
        return xm_ocl_fail(err, code, "clCreateKernel", "kernel '%s'", k->base.name);
    pthread_mutex_lock(&k->lock); /* protects k->named */
    const enum xm_status status = bind_args(base, k, bound, args, n_args, err);
    pthread_mutex_unlock(&k->lock);
    if (status == XM_OK)
        *out = bound;
    else
        clReleaseKernel(bound);
    return status;
}

enum xm_status
xm_ocl_queue_rebind(struct xm_queue *base, struct xm_kernel *kernel, void *bound,
                    uint32_t i, const struct xm_arg *arg, struct xm_error *err)
{
    const struct ocl_kernel *k = (const struct ocl_kernel *)kernel;
    XM_TRY(check_arg(k, i, arg, err));
    return bind_arg(base, k, bound, i, arg, err);
}

void
xm_ocl_queue_unbind(void *bound)
{
    clReleaseKernel(bound);
}

enum xm_status
xm_ocl_queue_run_bound(struct xm_queue *base, struct xm_kernel *kernel, void *bound,
                       const struct xm_launch *launch, struct xm_error *err)
{
    return enqueue(ocl_queue(base), (const struct ocl_kernel *)kernel, bound, launch,
                   err);
}

/* ---- functions of the host ----------------------------------------------------------- */

/* Calls a host function on a device without native kernels: waits for the queue first. */
static enum xm_status
call_host(struct xm_queue *base, const char *name, void (*fn)(void *), const void *ctx,
          size_t ctx_bytes, struct xm_error *err)
{
    XM_TRY(xm_queue_finish(base, err));
    void *copy = ctx_bytes ? xm_malloc(ctx_bytes) : NULL;
    if (ctx_bytes && !copy)
        return xm_no_memory(err, "a host step");
    if (copy)
        memcpy(copy, ctx, ctx_bytes);
    const double start = base->measures ? xm_now() : 0.0;
    fn(copy);
    if (base->measures)
        xm_queue_add_host(base, name, start, xm_now());
    xm_free(copy);
    return XM_OK;
}

enum xm_status
xm_ocl_queue_run_host(struct xm_queue *base, const char *name, void (*fn)(void *),
                      const void *ctx, size_t ctx_bytes, struct xm_error *err)
{
    struct ocl_queue *q = ocl_queue(base);
    cl_event event;
    if (!xm_device_really_has(&base->engine->info, XM_CAP_NATIVE_KERNEL))
        return call_host(base, name, fn, ctx, ctx_bytes, err);
    await_others(q);
    /* The driver copies the arguments and does not change them: the cast drops const. */
    cl_int code = clEnqueueNativeKernel(
        q->queue, fn, ctx_bytes ? (void *)(uintptr_t)ctx : NULL, ctx_bytes, 0, NULL, NULL,
        0, NULL, event_for(q, name, &event));
    add_event(q, name, event);
    code = keep_order(q, code);
    if (code == CL_SUCCESS)
        return XM_OK;
    return xm_ocl_fail(err, code, "clEnqueueNativeKernel", "%zu bytes of arguments",
                       ctx_bytes);
}

/* A blocking transfer of `bytes` bytes at `offset` of a cl_mem. */
static struct ocl_transfer
transfer(const struct ocl_queue *q, const struct xm_buffer *b, uint64_t offset,
         uint64_t bytes)
{
    return (struct ocl_transfer){q->queue, b, offset, bytes, true, q->out_of_order, NULL};
}

static cl_int
enqueue_write(struct ocl_queue *q, struct xm_buffer *dst, uint64_t offset,
              const void *src, uint64_t bytes, bool is_blocking)
{
    struct ocl_transfer t = transfer(q, dst, offset, bytes);
    t.is_blocking = is_blocking;
    await_others(q);
    const cl_int code =
        is_cl_mem(dst)
            ? xm_ocl_write_mem(&t, src)
            : usm_of(&q->base)->memcpy(q->queue, is_blocking ? CL_TRUE : CL_FALSE,
                                       (char *)dst->native + offset, src, bytes, 0, NULL,
                                       NULL);
    return keep_order(q, code);
}

/* Whether the host may write the buffer itself, without a command. */
static bool
host_may_write(const struct ocl_queue *q, const struct xm_buffer *b)
{
    return b->host && !q->busy && !b->is_shared;
}

enum xm_status
xm_ocl_queue_write(struct xm_queue *base, struct xm_buffer *dst, uint64_t offset,
                   const void *src, uint64_t bytes, struct xm_error *err)
{
    struct ocl_queue *q = ocl_queue(base);
    cl_int code;
    if (host_may_write(q, dst)) {
        memcpy((char *)dst->host + offset, src, bytes);
        return XM_OK;
    }
    base->waits++;
    code = enqueue_write(q, dst, offset, src, bytes, true);
    if (code == CL_SUCCESS)
        return XM_OK;
    return xm_ocl_fail_wait(err, code, "a write to the device",
                            "%" PRIu64 " bytes at %" PRIu64, bytes, offset);
}

enum xm_status
xm_ocl_queue_send(struct xm_queue *base, struct xm_buffer *dst, uint64_t offset,
                  const void *src, uint64_t bytes, struct xm_error *err)
{
    struct ocl_queue *q = ocl_queue(base);
    if (host_may_write(q, dst)) {
        memcpy((char *)dst->host + offset, src, bytes);
        return XM_OK;
    }
    const cl_int code = enqueue_write(q, dst, offset, src, bytes, false);
    if (code == CL_SUCCESS)
        return XM_OK;
    return xm_ocl_fail(err, code, "a write to the device",
                       "%" PRIu64 " bytes at %" PRIu64, bytes, offset);
}

/* Called when all commands of the queue have ended. */
static void
note_finished(struct ocl_queue *q)
{
    q->busy = false;
    xm_ocl_times_sum(&q->times);
    if (q->pace)
        clReleaseEvent(q->pace);
    q->pace = NULL;
}

enum xm_status
xm_ocl_queue_read(struct xm_queue *base, const struct xm_buffer *src, uint64_t offset,
                  void *dst, uint64_t bytes, struct xm_error *err)
{
    struct ocl_queue *q = ocl_queue(base);
    cl_int code;
    if (src->host) {
        if (q->busy || src->is_shared)
            XM_TRY(xm_ocl_queue_finish(base, err));
        memcpy(dst, (const char *)src->host + offset, bytes);
        return XM_OK;
    }
    await_others(q);
    const struct ocl_transfer t = transfer(q, src, offset, bytes);
    if (is_cl_mem(src))
        code = xm_ocl_read_mem(&t, dst);
    else
        code = usm_of(base)->memcpy(q->queue, CL_TRUE, dst,
                                    (const char *)src->native + offset, bytes, 0, NULL,
                                    NULL);
    code = keep_order(q, code);
    if (code == CL_SUCCESS) {
        note_finished(q); /* all commands precede the read    */
        return XM_OK;
    }
    return xm_ocl_fail_wait(err, code, "a read from the device",
                            "%" PRIu64 " bytes at %" PRIu64, bytes, offset);
}

/* Copies between a cl_mem and USM device memory by way of host memory: OpenCL has no command for
 * it. */
static enum xm_status
copy_by_host(struct xm_queue *q, const struct xm_buffer *src, uint64_t src_offset,
             struct xm_buffer *dst, uint64_t dst_offset, uint64_t bytes,
             struct xm_error *err)
{
    void *between = xm_malloc((size_t)bytes);
    if (!between)
        return xm_no_memory(err, "a copy of %" PRIu64 " bytes", bytes);
    enum xm_status s = xm_queue_read(q, src, src_offset, between, bytes, err);
    if (s == XM_OK)
        s = xm_queue_write(q, dst, dst_offset, between, bytes, err);
    xm_free(between);
    return s;
}

/* The address of a buffer for clEnqueueMemcpyINTEL: USM or host memory; NULL: a cl_mem that the
 * host cannot address. */
static char *
address_of(const struct xm_buffer *b)
{
    return is_cl_mem(b) ? b->host : b->native;
}

static cl_int
enqueue_copy(const struct xm_queue *base, const struct xm_buffer *src,
             uint64_t src_offset, const struct xm_buffer *dst, uint64_t dst_offset,
             uint64_t bytes, cl_event *at)
{
    const struct ocl_queue *q = ocl_queue(base);
    if (is_cl_mem(src) && is_cl_mem(dst))
        return clEnqueueCopyBuffer(q->queue, src->native, dst->native, src_offset,
                                   dst_offset, bytes, 0, NULL, at);
    if (address_of(src) && address_of(dst))
        return usm_of(base)->memcpy(q->queue, CL_FALSE, address_of(dst) + dst_offset,
                                    address_of(src) + src_offset, bytes, 0, NULL, at);
    struct ocl_transfer t = is_cl_mem(src) ? transfer(q, src, src_offset, bytes)
                                           : transfer(q, dst, dst_offset, bytes);
    t.is_blocking = false;
    t.event = at;
    return is_cl_mem(src) ? xm_ocl_read_mem(&t, (char *)dst->host + dst_offset)
                          : xm_ocl_write_mem(&t, (const char *)src->host + src_offset);
}

enum xm_status
xm_ocl_queue_copy(struct xm_queue *base, const struct xm_buffer *src, uint64_t src_offset,
                  struct xm_buffer *dst, uint64_t dst_offset, uint64_t bytes,
                  struct xm_error *err)
{
    struct ocl_queue *q = ocl_queue(base);
    if (is_cl_mem(src) != is_cl_mem(dst) && !src->host && !dst->host)
        return copy_by_host(base, src, src_offset, dst, dst_offset, bytes, err);
    cl_event event, *at = event_for(q, "copy", &event);
    await_others(q);
    cl_int code = enqueue_copy(base, src, src_offset, dst, dst_offset, bytes, at);
    add_event(q, "copy", event);
    code = keep_order(q, code);
    if (code == CL_SUCCESS)
        return XM_OK;
    return xm_ocl_fail(err, code, "a copy on the device",
                       "%" PRIu64 " bytes from %" PRIu64 " to %" PRIu64, bytes,
                       src_offset, dst_offset);
}

enum xm_status
xm_ocl_queue_fill(struct xm_queue *base, struct xm_buffer *dst, uint64_t offset,
                  uint8_t value, uint64_t bytes, struct xm_error *err)
{
    struct ocl_queue *q = ocl_queue(base);
    cl_int code;
    cl_event event, *at = event_for(q, "fill", &event);
    await_others(q);
    if (is_cl_mem(dst))
        code = clEnqueueFillBuffer(q->queue, dst->native, &value, 1, offset, bytes, 0,
                                   NULL, at);
    else
        code = usm_of(base)->fill(q->queue, (char *)dst->native + offset, &value, 1,
                                  bytes, 0, NULL, at);
    add_event(q, "fill", event);
    code = keep_order(q, code);
    if (code == CL_SUCCESS)
        return XM_OK;
    return xm_ocl_fail(err, code, "a fill on the device", "%" PRIu64 " bytes at %" PRIu64,
                       bytes, offset);
}

enum xm_status
xm_ocl_queue_flush(struct xm_queue *base, struct xm_error *err)
{
    cl_int code = clFlush(ocl_queue(base)->queue);
    return code == CL_SUCCESS
               ? XM_OK
               : xm_ocl_fail(err, code, "clFlush", "%s", base->engine->info.name);
}

enum xm_status
xm_ocl_queue_keep_pace(struct xm_queue *base, struct xm_error *err)
{
    struct ocl_queue *q = ocl_queue(base);
    cl_event before = q->pace;
    q->pace = NULL;
    cl_int code = clEnqueueMarkerWithWaitList(q->queue, 0, NULL, &q->pace);
    if (code == CL_SUCCESS)
        code = clFlush(q->queue);
    if (before && code == CL_SUCCESS)
        code = clWaitForEvents(1, &before);
    if (before)
        clReleaseEvent(before);
    return code == CL_SUCCESS ? XM_OK
                              : xm_ocl_fail_wait(err, code, "clWaitForEvents", "%s",
                                                 base->engine->info.name);
}

enum xm_status
xm_ocl_queue_finish(struct xm_queue *base, struct xm_error *err)
{
    cl_int code = clFinish(ocl_queue(base)->queue);
    if (code != CL_SUCCESS)
        return xm_ocl_fail_wait(err, code, "clFinish", "%s", base->engine->info.name);
    note_finished(ocl_queue(base));
    return XM_OK;
}

void *
xm_ocl_queue_native(struct xm_queue *q)
{
    ocl_queue(q)->busy = true; /* commands of the caller follow            */
    return ocl_queue(q)->queue;
}

/* ---- measurements -------------------------------------------------------------------- */

static enum xm_status
give_times(struct xm_queue *base, xm_profile_fn fn, void *ctx, struct xm_error *err)
{
    return xm_ocl_times_give(&ocl_queue(base)->times, fn, ctx, err);
}

static void
reset_times(struct xm_queue *base)
{
    xm_ocl_times_reset(&ocl_queue(base)->times);
}

static void
share_times(struct xm_queue *base, struct xm_label_times *t)
{
    ocl_queue(base)->times.shared = t;
}

/* Enqueues a marker that ends now: the difference of its time and xm_now() translates times of the
 * host to the device's clock. */
static enum xm_status
begin_trace(struct xm_queue *base, struct xm_error *err)
{
    struct ocl_queue *q = ocl_queue(base);
    cl_event marker = NULL;
    cl_int code = clEnqueueMarkerWithWaitList(q->queue, 0, NULL, &marker);
    if (code == CL_SUCCESS)
        code = clFinish(q->queue);
    const double now = xm_now();
    enum xm_status s =
        code == CL_SUCCESS
            ? xm_ocl_times_begin_trace(&q->times, marker, 1e9 * now, err)
            : xm_ocl_fail_wait(err, code, "clEnqueueMarkerWithWaitList", "a trace");
    if (marker)
        clReleaseEvent(marker);
    return s;
}

static void
give_trace(struct xm_queue *base, xm_trace_fn fn, void *ctx, uint64_t *dropped)
{
    xm_ocl_times_trace(&ocl_queue(base)->times, fn, ctx, dropped);
}

static void
add_host(struct xm_queue *base, const char *name, double start, double end)
{
    const struct ocl_launch_id id = id_of(ocl_queue(base), name, "");
    xm_ocl_times_add_host(&ocl_queue(base)->times, 1e9 * start, 1e9 * end, &id);
}

static void
begin_native(struct xm_queue *base)
{
    struct ocl_queue *q = ocl_queue(base);
    if (clEnqueueMarkerWithWaitList(q->queue, 0, NULL, &q->native) != CL_SUCCESS)
        q->native = NULL;
}

static void
end_native(struct xm_queue *base, const char *name)
{
    struct ocl_queue *q = ocl_queue(base);
    const struct ocl_launch_id id = id_of(q, name, "");
    cl_event after = NULL;
    if (q->native && xm_ocl_times_reserve(&q->times, &id) &&
        clEnqueueMarkerWithWaitList(q->queue, 0, NULL, &after) == CL_SUCCESS)
        xm_ocl_times_add(&q->times, q->native, after, &id);
    else if (q->native)
        clReleaseEvent(q->native);
    q->native = NULL;
}

const struct xm_measuring_ops xm_ocl_measuring = {
    .profile = give_times,
    .reset_profile = reset_times,
    .share_times = share_times,
    .begin_trace = begin_trace,
    .trace = give_trace,
    .add_host = add_host,
    .begin_native = begin_native,
    .end_native = end_native,
};
