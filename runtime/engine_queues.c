/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues: checks launches, arguments and ranges; enqueues host functions; reports failures at
 * waits. */
#include <inttypes.h>
#include <string.h>

#include "runtime/engine_ops.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

enum xm_status
xm_queue_create(struct xm_engine *engine, struct xm_queue **out, struct xm_error *err)
{
    *out = NULL;
    XM_TRY(xm_engine_check_alive(engine, err));
    XM_TRY(xm_engine_settle(engine, engine->ops->queue_create(engine, out, err), err));
    (*out)->engine = engine;
    (*out)->label = XM_NO_LABEL;
    xm_engine_ref(engine);
    return XM_OK;
}

void
xm_queue_destroy(struct xm_queue *q)
{
    if (!q)
        return;
    struct xm_engine *engine = q->engine;
    engine->ops->queue_destroy(q);
    xm_engine_unref(engine);
}

struct xm_engine *
xm_queue_engine(const struct xm_queue *q)
{
    return q->engine;
}

/* Checks the sizes of a launch. *full is the launch with 0 replaced by 1. */
static enum xm_status
check_launch(const struct xm_device_info *info, const struct xm_kernel *k,
             const struct xm_launch *launch, struct xm_launch *full, struct xm_error *err)
{
    uint64_t group = 1;
    *full = *launch;
    for (int d = 0; d < 3; d++) {
        if (d > 0 && full->global[d] == 0)
            full->global[d] = 1;
        if (launch->local[0] && full->local[d] == 0)
            full->local[d] = 1;
        if (full->global[d] == 0)
            return xm_fail(err, XM_INVALID, "kernel '%s': the launch has 0 work-items",
                           k->name);
        if (full->local[d] && full->global[d] % full->local[d])
            return xm_fail(err, XM_INVALID,
                           "kernel '%s': global size %" PRIu64
                           " in dimension %d is not a multiple of local size %" PRIu64,
                           k->name, full->global[d], d, full->local[d]);
        if (full->local[d] && !xm_mul_size(group, full->local[d], &group))
            group = UINT64_MAX;
    }
    if (launch->local[0] && info->max_work_group && group > info->max_work_group)
        return xm_fail(err, XM_UNSUPPORTED,
                       "kernel '%s': a work-group of %" PRIu64
                       " work-items, but %s has at most %" PRIu64,
                       k->name, group, info->name, info->max_work_group);
    return XM_OK;
}

static enum xm_status
check_args(const struct xm_device_info *info, const struct xm_kernel *k,
           const struct xm_arg *args, uint32_t n_args, struct xm_error *err)
{
    uint64_t local = 0;
    if (n_args > XM_KERNEL_ARGS)
        return xm_fail(err, XM_UNSUPPORTED, "kernel '%s': %u arguments, at most %d",
                       k->name, n_args, XM_KERNEL_ARGS);
    for (uint32_t i = 0; i < n_args; i++) {
        if (args[i].kind == XM_ARG_LOCAL)
            local += args[i].bytes;
        if (args[i].kind == XM_ARG_TOO_LARGE)
            return xm_fail(err, XM_UNSUPPORTED,
                           "kernel '%s': argument %u is %" PRIu64 ", above %d", k->name,
                           i, args[i].value.u64, INT32_MAX);
        if (args[i].kind == XM_ARG_SCALAR && args[i].bytes != 4 && args[i].bytes != 8 &&
            args[i].bytes != 16)
            return xm_fail(err, XM_INVALID,
                           "kernel '%s': scalar argument %u has %u bytes, not 4, 8 or 16",
                           k->name, i, args[i].bytes);
    }
    if (info->local_bytes && local > info->local_bytes)
        return xm_fail(err, XM_UNSUPPORTED,
                       "kernel '%s': %" PRIu64
                       " bytes of local memory, but %s has %" PRIu64,
                       k->name, local, info->name, info->local_bytes);
    return XM_OK;
}

enum xm_status
xm_queue_run(struct xm_queue *q, struct xm_kernel *k, const struct xm_arg *args,
             uint32_t n_args, const struct xm_launch *launch, struct xm_error *err)
{
    struct xm_launch full;
    bool done;
    XM_TRY(check_launch(&q->engine->info, k, launch, &full, err));
    XM_TRY(check_args(&q->engine->info, k, args, n_args, err));
    XM_TRY(xm_engine_check_alive(q->engine, err));
    XM_TRY(xm_engine_settle(
        q->engine, xm_queue_run_patched(q, k, args, n_args, &full, &done, err), err));
    if (!done) {
        XM_TRY(xm_engine_settle(
            q->engine, q->engine->ops->run(q, k, args, n_args, &full, err), err));
        xm_queue_record_launch(q, k, args, n_args, &full);
    }
    return xm_queue_launched(q, k, err);
}

enum xm_status
xm_queue_launched(struct xm_queue *q, const struct xm_kernel *k, struct xm_error *err)
{
    q->kernels++;
    if (!xm_debug_on(XM_DEBUG_SYNC))
        return XM_OK;
    enum xm_status status = xm_queue_finish(q, err);
    xm_error_prefix(err, "after kernel '%s'", k->name);
    return status;
}

/* A host function in a queue, with a copy of the caller's bytes. */
struct host_call {
    struct xm_queue *queue;
    xm_host_fn fn;
    max_align_t ctx[];
};

static void
call_host(void *call)
{
    struct host_call *c = call;
    struct xm_error err = {.status = XM_OK};
    if (c->fn(c->ctx, &err) == XM_OK || atomic_load(&c->queue->has_host_error))
        return;
    c->queue->host_error = err;
    atomic_store(&c->queue->has_host_error, true);
}

enum xm_status
xm_queue_run_host(struct xm_queue *q, const char *name, xm_host_fn fn, const void *ctx,
                  size_t ctx_bytes, struct xm_error *err)
{
    XM_TRY(xm_engine_check_alive(q->engine, err));
    xm_queue_miss_command(q);
    const size_t bytes = sizeof(struct host_call) + ctx_bytes;
    struct host_call *c = xm_malloc(bytes);
    if (!c)
        return xm_no_memory(err, "a host step");
    *c = (struct host_call){q, fn};
    if (ctx_bytes)
        memcpy(c->ctx, ctx, ctx_bytes);
    enum xm_status status = q->engine->ops->run_host(q, name, call_host, c, bytes, err);
    xm_free(c);
    return xm_engine_settle(q->engine, status, err);
}

/* Returns the failure of a wait or, if it succeeded, that of a host function that has run. */
static enum xm_status
settle_wait(struct xm_queue *q, enum xm_status waited, struct xm_error *err)
{
    enum xm_status status = xm_engine_settle(q->engine, waited, err);
    if (status != XM_OK || !atomic_exchange(&q->has_host_error, false))
        return status;
    return xm_fail(err, q->host_error.status, "%s", q->host_error.text);
}

static enum xm_status
check_range(const char *what, const struct xm_buffer *b, uint64_t offset, uint64_t bytes,
            struct xm_error *err)
{
    if (offset > b->bytes || bytes > b->bytes - offset)
        return xm_fail(err, XM_INVALID,
                       "%s of %" PRIu64 " bytes at %" PRIu64
                       " goes past the end of a buffer of %" PRIu64 " bytes",
                       what, bytes, offset, b->bytes);
    return XM_OK;
}

enum xm_status
xm_queue_write(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
               const void *src, uint64_t bytes, struct xm_error *err)
{
    XM_TRY(check_range("a write", dst, offset, bytes, err));
    if (bytes == 0)
        return XM_OK;
    XM_TRY(xm_engine_check_alive(q->engine, err));
    xm_queue_miss_command(q);
    return xm_engine_settle(q->engine,
                            q->engine->ops->write(q, dst, offset, src, bytes, err), err);
}

enum xm_status
xm_queue_send(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset, const void *src,
              uint64_t bytes, struct xm_error *err)
{
    const struct xm_engine_ops *ops = q->engine->ops;
    XM_TRY(check_range("a write", dst, offset, bytes, err));
    if (bytes == 0)
        return XM_OK;
    XM_TRY(xm_engine_check_alive(q->engine, err));
    xm_queue_miss_command(q);
    return xm_engine_settle(
        q->engine, (ops->send ? ops->send : ops->write)(q, dst, offset, src, bytes, err),
        err);
}

enum xm_status
xm_queue_read(struct xm_queue *q, const struct xm_buffer *src, uint64_t offset, void *dst,
              uint64_t bytes, struct xm_error *err)
{
    XM_TRY(check_range("a read", src, offset, bytes, err));
    if (bytes == 0)
        return XM_OK;
    q->waits++;
    XM_TRY(xm_engine_check_alive(q->engine, err));
    xm_queue_miss_command(q);
    return settle_wait(q, q->engine->ops->read(q, src, offset, dst, bytes, err), err);
}

enum xm_status
xm_queue_copy(struct xm_queue *q, const struct xm_buffer *src, uint64_t src_offset,
              struct xm_buffer *dst, uint64_t dst_offset, uint64_t bytes,
              struct xm_error *err)
{
    XM_TRY(check_range("a copy out", src, src_offset, bytes, err));
    XM_TRY(check_range("a copy in", dst, dst_offset, bytes, err));
    if (bytes == 0)
        return XM_OK;
    XM_TRY(xm_engine_check_alive(q->engine, err));
    xm_queue_miss_command(q);
    return xm_engine_settle(
        q->engine, q->engine->ops->copy(q, src, src_offset, dst, dst_offset, bytes, err),
        err);
}

enum xm_status
xm_queue_fill(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset, uint8_t value,
              uint64_t bytes, struct xm_error *err)
{
    XM_TRY(check_range("a fill", dst, offset, bytes, err));
    if (bytes == 0)
        return XM_OK;
    XM_TRY(xm_engine_check_alive(q->engine, err));
    xm_queue_miss_command(q);
    return xm_engine_settle(q->engine,
                            q->engine->ops->fill(q, dst, offset, value, bytes, err), err);
}

enum xm_status
xm_queue_flush(struct xm_queue *q, struct xm_error *err)
{
    XM_TRY(xm_engine_check_alive(q->engine, err));
    return xm_engine_settle(q->engine, q->engine->ops->flush(q, err), err);
}

enum xm_status
xm_queue_keep_pace(struct xm_queue *q, struct xm_error *err)
{
    XM_TRY(xm_engine_check_alive(q->engine, err));
    return q->engine->ops->keep_pace
               ? settle_wait(q, q->engine->ops->keep_pace(q, err), err)
               : XM_OK;
}

enum xm_status
xm_queue_finish(struct xm_queue *q, struct xm_error *err)
{
    q->waits++;
    XM_TRY(xm_engine_check_alive(q->engine, err));
    return settle_wait(q, q->engine->ops->finish(q, err), err);
}

void
xm_queue_counts(const struct xm_queue *q, uint64_t *waits, uint64_t *kernels)
{
    *waits = q->waits;
    *kernels = q->kernels;
}

void *
xm_queue_native(struct xm_queue *q)
{
    xm_queue_miss_command(q); /* counts the commands that the caller enqueues there */
    return q->engine->ops->queue_native ? q->engine->ops->queue_native(q) : NULL;
}
