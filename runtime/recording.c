/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings: launches with what the engine has bound for them, and the buffers that they use.
 */
#include "runtime/recording.h"

#include "runtime/engine_ops.h"
#include "runtime/util/memory.h"

struct recorded {
    struct xm_kernel *kernel; /* the engine's */
    void *bound;              /* owned; of ops->bind */
    struct xm_launch launch;
    uint32_t n_buffers; /* that the recording has up to here */
};

struct xm_recording {
    struct xm_engine *engine; /* referenced */
    struct recorded *list;
    size_t n, capacity;
    struct xm_buffer **buffers; /* referenced */
    size_t n_buffers, buffer_capacity;
    uint64_t missed;
};

enum xm_status
xm_recording_create(struct xm_queue *q, struct xm_recording **out, struct xm_error *err)
{
    *out = NULL;
    if (!q->engine->ops->bind)
        return xm_fail(err, XM_UNSUPPORTED, "%s has no recordings", q->engine->info.name);
    struct xm_recording *rec = xm_calloc(1, sizeof(*rec));
    if (!rec)
        return xm_no_memory(err, "a recording");
    rec->engine = q->engine;
    xm_engine_ref(rec->engine);
    *out = rec;
    return XM_OK;
}

void
xm_recording_truncate(struct xm_recording *rec, uint32_t n)
{
    while (rec->n > n)
        rec->engine->ops->unbind(rec->list[--rec->n].bound);
    const size_t buffers = rec->n ? rec->list[rec->n - 1].n_buffers : 0;
    while (rec->n_buffers > buffers)
        xm_buffer_unref(rec->buffers[--rec->n_buffers]);
}

void
xm_recording_destroy(struct xm_recording *rec)
{
    if (!rec)
        return;
    xm_recording_truncate(rec, 0);
    xm_free(rec->list);
    xm_free(rec->buffers);
    xm_engine_unref(rec->engine);
    xm_free(rec);
}

void
xm_queue_record(struct xm_queue *q, struct xm_recording *rec)
{
    q->recording = rec;
}

uint32_t
xm_recording_launches(const struct xm_recording *rec)
{
    return (uint32_t)rec->n;
}

uint64_t
xm_recording_missed(const struct xm_recording *rec)
{
    return rec->missed;
}

void
xm_queue_miss_command(struct xm_queue *q)
{
    if (q->recording)
        q->recording->missed++;
}

/* Room for a launch with `n_args` arguments. */
static bool
make_room(struct xm_recording *rec, uint32_t n_args)
{
    struct recorded *list =
        xm_grow(rec->list, &rec->capacity, rec->n + 1, sizeof(*rec->list));
    if (list)
        rec->list = list;
    struct xm_buffer **buffers =
        xm_grow(rec->buffers, &rec->buffer_capacity, rec->n_buffers + n_args + 1,
                sizeof(struct xm_buffer *));
    if (buffers)
        rec->buffers = buffers;
    return list && buffers;
}

static void
keep_buffers(struct xm_recording *rec, const struct xm_arg *args, uint32_t n_args)
{
    for (uint32_t i = 0; i < n_args; i++) {
        if (args[i].kind != XM_ARG_BUFFER || !args[i].buffer)
            continue;
        /* an argument is const, but has as many references as anybody wants */
        struct xm_buffer *b = (struct xm_buffer *)(uintptr_t)args[i].buffer;
        xm_buffer_ref(b);
        rec->buffers[rec->n_buffers++] = b;
    }
}

void
xm_queue_record_launch(struct xm_queue *q, struct xm_kernel *k, const struct xm_arg *args,
                       uint32_t n_args, const struct xm_launch *launch)
{
    struct xm_recording *rec = q->recording;
    struct xm_error ignored = {0};
    void *bound = NULL;
    if (!rec)
        return;
    if (!make_room(rec, n_args) ||
        q->engine->ops->bind(q, k, args, n_args, &bound, &ignored) != XM_OK) {
        rec->missed++;
        return;
    }
    keep_buffers(rec, args, n_args);
    rec->list[rec->n++] = (struct recorded){k, bound, *launch, (uint32_t)rec->n_buffers};
}

enum xm_status
xm_queue_replay(struct xm_queue *q, const struct xm_recording *rec, uint32_t first,
                uint32_t n, struct xm_error *err)
{
    XM_TRY(xm_engine_check_alive(q->engine, err));
    for (uint32_t i = first; i < first + n; i++) {
        const struct recorded *r = &rec->list[i];
        XM_TRY(xm_engine_settle(
            q->engine, q->engine->ops->run_bound(q, r->kernel, r->bound, &r->launch, err),
            err));
        XM_TRY(xm_queue_launched(q, r->kernel, err));
    }
    return XM_OK;
}
