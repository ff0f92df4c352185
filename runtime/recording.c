/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings: launches with the objects that the engine bound for them, and references to the
 * buffers that they use. */
#include "runtime/recording.h"

#include <string.h>

#include "runtime/engine_ops.h"
#include "runtime/util/memory.h"

struct recorded {
    struct xm_kernel *kernel; /* owned by the engine */
    void *bound;              /* owned; from ops->bind */
    struct xm_launch launch;
    struct xm_arg *args; /* owned; the bound arguments; their buffers are referenced */
    uint32_t n_args;
};

struct xm_recording {
    struct xm_engine *engine; /* referenced */
    struct recorded *list;
    size_t n, capacity;
    uint64_t missed;
};

enum xm_status
xm_recording_create(struct xm_queue *q, struct xm_recording **out, struct xm_error *err)
{
    *out = NULL;
    if (!q->engine->ops->bind)
        return xm_fail(err, XM_UNSUPPORTED, "%s cannot record launches",
                       q->engine->info.name);
    struct xm_recording *rec = xm_calloc(1, sizeof(*rec));
    if (!rec)
        return xm_no_memory(err, "a recording");
    rec->engine = q->engine;
    xm_engine_ref(rec->engine);
    *out = rec;
    return XM_OK;
}

/* The buffer of an argument, without const: counting references changes it. */
static struct xm_buffer *
buffer_of(const struct xm_arg *a)
{
    return a->kind == XM_ARG_BUFFER ? (struct xm_buffer *)(uintptr_t)a->buffer : NULL;
}

static void
keep_arg(struct xm_arg *to, const struct xm_arg *from)
{
    struct xm_buffer *b = buffer_of(from);
    if (b)
        xm_buffer_ref(b);
    *to = *from;
}

void
xm_recording_truncate(struct xm_recording *rec, uint32_t n)
{
    while (rec->n > n) {
        struct recorded *r = &rec->list[--rec->n];
        rec->engine->ops->unbind(r->bound);
        for (uint32_t i = 0; i < r->n_args; i++)
            xm_buffer_unref(buffer_of(&r->args[i]));
        xm_free(r->args);
    }
}

void
xm_recording_destroy(struct xm_recording *rec)
{
    if (!rec)
        return;
    xm_recording_truncate(rec, 0);
    xm_free(rec->list);
    xm_engine_unref(rec->engine);
    xm_free(rec);
}

void
xm_queue_record(struct xm_queue *q, struct xm_recording *rec)
{
    q->recording = rec;
    q->is_patching = false;
}

void
xm_queue_patch(struct xm_queue *q, struct xm_recording *rec, uint32_t first, uint32_t n)
{
    q->recording = rec;
    q->is_patching = true;
    q->patch_at = first;
    q->patch_end = first + n;
}

void
xm_queue_repeat(struct xm_queue *q, struct xm_recording *rec)
{
    if (rec && rec->n)
        xm_queue_patch(q, rec, 0, (uint32_t)rec->n);
    else
        xm_queue_record(q, rec);
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

void
xm_queue_record_launch(struct xm_queue *q, struct xm_kernel *k, const struct xm_arg *args,
                       uint32_t n_args, const struct xm_launch *launch)
{
    struct xm_recording *rec = q->recording;
    struct xm_error ignored = {0};
    struct recorded r = {.kernel = k, .launch = *launch, .n_args = n_args};
    if (!rec)
        return;
    struct recorded *list =
        xm_grow(rec->list, &rec->capacity, rec->n + 1, sizeof(*rec->list));
    rec->list = list ? list : rec->list;
    r.args = xm_calloc(n_args + 1, sizeof(*r.args));
    if (q->is_patching || !list || !r.args ||
        q->engine->ops->bind(q, k, args, n_args, &r.bound, &ignored) != XM_OK) {
        xm_free(r.args);
        rec->missed++;
        return;
    }
    for (uint32_t i = 0; i < n_args; i++)
        keep_arg(&r.args[i], &args[i]);
    rec->list[rec->n++] = r;
}

/* ---- launches in the place of recorded ones ------------------------------------------------- */

static bool
is_same_arg(const struct xm_arg *a, const struct xm_arg *b)
{
    if (a->kind != b->kind || a->buffer != b->buffer || a->bytes != b->bytes)
        return false;
    return a->kind != XM_ARG_SCALAR || memcmp(&a->value, &b->value, a->bytes) == 0;
}

/* Whether a launch may replace a recorded one. Its local size must be equal, because the driver may
 * have compiled other code for another one. */
static bool
fits(const struct recorded *r, const struct xm_kernel *k, uint32_t n_args,
     const struct xm_launch *launch)
{
    return r->kernel == k && r->n_args == n_args &&
           memcmp(r->launch.local, launch->local, sizeof(launch->local)) == 0;
}

/* Binds the arguments that differ. One that could not be bound is marked as unknown, so that the
 * next launch binds it again. */
static enum xm_status
patch_args(struct xm_queue *q, struct recorded *r, const struct xm_arg *args,
           struct xm_error *err)
{
    for (uint32_t i = 0; i < r->n_args; i++) {
        struct xm_buffer *before = buffer_of(&r->args[i]);
        if (is_same_arg(&r->args[i], &args[i]))
            continue;
        r->args[i] = (struct xm_arg){.kind = XM_ARG_TOO_LARGE};
        xm_buffer_unref(before); /* not used by any later launch   */
        XM_TRY(q->engine->ops->rebind(q, r->kernel, r->bound, i, &args[i], err));
        keep_arg(&r->args[i], &args[i]);
    }
    return XM_OK;
}

enum xm_status
xm_queue_run_patched(struct xm_queue *q, struct xm_kernel *k, const struct xm_arg *args,
                     uint32_t n_args, const struct xm_launch *launch, bool *done,
                     struct xm_error *err)
{
    *done = false;
    if (!q->is_patching || q->patch_at == q->patch_end)
        return XM_OK;
    struct recorded *r = &q->recording->list[q->patch_at];
    if (!fits(r, k, n_args, launch)) {
        /* launches after it would not match their positions either */
        q->patch_at = q->patch_end;
        return XM_OK;
    }
    q->patch_at++;
    XM_TRY(patch_args(q, r, args, err));
    *done = true;
    return q->engine->ops->run_bound(q, k, r->bound, launch, err);
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
