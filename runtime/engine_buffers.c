/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers of a device: their sizes, references and kinds, and the statistics of memory.
 */
#include <inttypes.h>

#include "runtime/engine_ops.h"
#include "runtime/util/memory.h"

static void
count_memory(struct xm_buffer *b, bool allocated)
{
    struct xm_memory_stats *s = &b->engine->stats;
    pthread_mutex_lock(&b->engine->stats_lock);
    if (allocated) {
        s->allocations++;
        s->buffers[b->kind]++;
        s->now[b->kind] += b->bytes;
        if (s->now[b->kind] > s->peak[b->kind])
            s->peak[b->kind] = s->now[b->kind];
        if (b->kind != XM_MEMORY_MAPPED)
            s->total_now += b->bytes;
        if (b->kind != XM_MEMORY_MAPPED && b->bytes > s->largest)
            s->largest = b->bytes;
        if (s->total_now > s->total_peak)
            s->total_peak = s->total_now;
    } else {
        s->now[b->kind] -= b->bytes;
        if (b->kind != XM_MEMORY_MAPPED)
            s->total_now -= b->bytes;
    }
    pthread_mutex_unlock(&b->engine->stats_lock);
}

/* Creates an empty buffer of `engine` with one reference. */
static enum xm_status
new_buffer(struct xm_engine *engine, uint64_t bytes, struct xm_buffer **out,
           struct xm_error *err)
{
    struct xm_buffer *b = xm_calloc(1, sizeof(*b));
    if (!b)
        return xm_no_memory(err, "a buffer of the device");
    atomic_init(&b->refs, 1);
    b->engine = engine;
    b->bytes = bytes;
    *out = b;
    return XM_OK;
}

static enum xm_status
check_size(const struct xm_engine *engine, uint64_t bytes, struct xm_error *err)
{
    if (bytes == 0)
        return xm_fail(err, XM_INVALID, "a device buffer of 0 bytes was requested");
    uint64_t max = engine->info.max_alloc_bytes;
    if (bytes > max)
        return xm_fail(err, XM_NO_MEMORY,
                       "a buffer of %" PRIu64
                       " bytes exceeds the largest allocation of %s, %" PRIu64 " bytes",
                       bytes, engine->info.name, max);
    return XM_OK;
}

static enum xm_status
keep_buffer(struct xm_buffer *b, enum xm_status status, struct xm_buffer **out)
{
    if (status != XM_OK) {
        xm_free(b);
        return status;
    }
    xm_engine_ref(b->engine);
    if (!b->is_foreign)
        count_memory(b, true);
    *out = b;
    return XM_OK;
}

enum xm_status
xm_buffer_create(struct xm_engine *engine, enum xm_buffer_use use, uint64_t bytes,
                 struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_buffer *b;
    XM_TRY(xm_engine_check_alive(engine, err));
    XM_TRY(check_size(engine, bytes, err));
    XM_TRY(new_buffer(engine, bytes, &b, err));
    enum xm_status status = engine->ops->buffer_create(b, use, err);
    return keep_buffer(b, xm_engine_settle(engine, status, err), out);
}

static enum xm_status
wrap_weight(struct xm_engine *engine, enum xm_buffer_use use, const void *bytes,
            uint64_t n_bytes, struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_buffer *b;
    XM_TRY(xm_engine_check_alive(engine, err));
    XM_TRY(check_size(engine, n_bytes, err));
    XM_TRY(new_buffer(engine, n_bytes, &b, err));
    enum xm_status status = engine->ops->buffer_from_host(b, use, bytes, err);
    return keep_buffer(b, xm_engine_settle(engine, status, err), out);
}

enum xm_status
xm_buffer_from_host(struct xm_engine *engine, const void *bytes, uint64_t n_bytes,
                    struct xm_buffer **out, struct xm_error *err)
{
    return wrap_weight(engine, XM_USE_WEIGHT, bytes, n_bytes, out, err);
}

enum xm_status
xm_buffer_copy(struct xm_engine *engine, const void *bytes, uint64_t n_bytes,
               struct xm_buffer **out, struct xm_error *err)
{
    return wrap_weight(engine, XM_USE_OWN_WEIGHT, bytes, n_bytes, out, err);
}

bool
xm_engine_shares_weight(struct xm_engine *engine, const void *bytes, uint64_t n)
{
    return xm_memory_is_shared(engine, XM_USE_WEIGHT, bytes, n);
}

enum xm_status
xm_buffer_on_host(struct xm_engine *engine, const void *bytes, uint64_t n_bytes,
                  struct xm_buffer **out, struct xm_error *err)
{
    return wrap_weight(engine, XM_USE_HOST_WEIGHT, bytes, n_bytes, out, err);
}

static enum xm_status
fail_unshared(const struct xm_engine *engine, enum xm_memory_kind kind,
              struct xm_error *err)
{
    return xm_fail(err, XM_UNSUPPORTED,
                   "%s has no %s memory that other programs could share",
                   engine->info.name, xm_memory_kind_text(kind));
}

enum xm_status
xm_buffer_create_shared(struct xm_engine *engine, enum xm_memory_kind kind,
                        uint64_t bytes, struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_buffer *b;
    XM_TRY(xm_engine_check_alive(engine, err));
    XM_TRY(check_size(engine, bytes, err));
    if (!engine->ops->buffer_create_shared ||
        (kind != XM_MEMORY_CL && !xm_engine_has_usm(engine)))
        return fail_unshared(engine, kind, err);
    XM_TRY(new_buffer(engine, bytes, &b, err));
    b->kind = kind;
    b->is_shared = true;
    enum xm_status status = engine->ops->buffer_create_shared(b, err);
    return keep_buffer(b, xm_engine_settle(engine, status, err), out);
}

enum xm_status
xm_buffer_wrap(struct xm_engine *engine, enum xm_memory_kind kind, void *native,
               uint64_t bytes, struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_buffer *b;
    XM_TRY(xm_engine_check_alive(engine, err));
    XM_TRY(check_size(engine, bytes, err));
    if (!engine->ops->buffer_wrap || (kind != XM_MEMORY_CL && !xm_engine_has_usm(engine)))
        return fail_unshared(engine, kind, err);
    XM_TRY(new_buffer(engine, bytes, &b, err));
    b->kind = kind;
    b->native = native;
    b->is_shared = b->is_foreign = true;
    enum xm_status status = engine->ops->buffer_wrap(b, err);
    return keep_buffer(b, xm_engine_settle(engine, status, err), out);
}

enum xm_status
xm_buffer_view(struct xm_buffer *parent, uint64_t offset, uint64_t bytes,
               struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    uint32_t align = parent->engine->info.base_align;
    if (bytes == 0 || offset > parent->bytes || bytes > parent->bytes - offset)
        return xm_fail(err, XM_INVALID,
                       "a view of %" PRIu64 " bytes at %" PRIu64
                       " does not lie in its buffer of %" PRIu64 " bytes",
                       bytes, offset, parent->bytes);
    if (align && offset % align)
        return xm_fail(err, XM_INVALID,
                       "a view begins at byte %" PRIu64
                       ", which is not a multiple of %u as %s needs",
                       offset, align, parent->engine->info.name);
    struct xm_buffer *b;
    XM_TRY(xm_engine_check_alive(parent->engine, err));
    XM_TRY(new_buffer(parent->engine, bytes, &b, err));
    b->root = parent->root ? parent->root : parent;
    b->offset = parent->offset + offset;
    b->kind = parent->kind;
    b->host = parent->host ? (char *)parent->host + offset : NULL;
    b->is_shared = parent->is_shared;
    enum xm_status status =
        xm_engine_settle(b->engine, parent->engine->ops->buffer_view(b, err), err);
    if (status != XM_OK) {
        xm_free(b);
        return status;
    }
    xm_buffer_ref(b->root);
    *out = b;
    return XM_OK;
}

void
xm_buffer_ref(struct xm_buffer *b)
{
    atomic_fetch_add(&b->refs, 1);
}

void
xm_buffer_unref(struct xm_buffer *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    b->engine->ops->buffer_release(b);
    if (b->root) {
        xm_buffer_unref(b->root);
    } else {
        if (!b->is_foreign)
            count_memory(b, false);
        xm_engine_unref(b->engine);
    }
    xm_free(b);
}

uint64_t
xm_buffer_bytes(const struct xm_buffer *b)
{
    return b->bytes;
}

struct xm_engine *
xm_buffer_engine(const struct xm_buffer *b)
{
    return b->engine;
}

enum xm_memory_kind
xm_buffer_kind(const struct xm_buffer *b)
{
    return b->kind;
}

void *
xm_buffer_host_ptr(const struct xm_buffer *b)
{
    return b->host;
}

void *
xm_buffer_native(const struct xm_buffer *b)
{
    return b->native;
}
