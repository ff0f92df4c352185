/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of an engine that is the same for every driver: argument checks, references,
 * statistics, and the table of built kernels.
 */
#include "runtime/engine.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/engine_ops.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

const char *
xm_memory_kind_text(enum xm_memory_kind kind)
{
    static const char *const text[XM_MEMORY_KIND_COUNT] = {
        [XM_MEMORY_CL] = "cl_mem",
        [XM_MEMORY_CL_HOST] = "cl_mem_host",
        [XM_MEMORY_USM_HOST] = "usm_host",
        [XM_MEMORY_USM_DEVICE] = "usm_device",
        [XM_MEMORY_USM_SHARED] = "usm_shared",
        [XM_MEMORY_MAPPED] = "mapped",
    };
    return kind < XM_MEMORY_KIND_COUNT ? text[kind] : "unknown";
}

/* ---- engines -------------------------------------------------------------------- */

enum xm_status
xm_engine_list(const struct xm_device_info **infos, size_t *n, struct xm_error *err)
{
    return xm_ocl_list(infos, n, err);
}

/* Once: a chip that devices.def does not know works by what its driver says. */
static void
warn_of_guess(const struct xm_device_info *d)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (d->facts_guessed && !atomic_flag_test_and_set(&warned))
        xm_log(XM_LOG_WARNING,
               "%s (IP %u.%u.%u) is not in the table of chips: it counts as %s, with "
               "what its "
               "driver says of it",
               d->name, d->ip_major, d->ip_minor, d->ip_revision,
               d->arch == XM_ARCH_UNKNOWN ? "an unknown GPU" : xm_arch_text(d->arch));
}

enum xm_status
xm_engine_create(size_t index, const struct xm_config *config, struct xm_engine **out,
                 struct xm_error *err)
{
    return xm_engine_create_in(index, config, NULL, out, err);
}

enum xm_status
xm_engine_find_shared(struct xm_shared_cl *share, uint32_t n, size_t *index,
                      struct xm_error *err)
{
    return xm_ocl_find_shared(share, n, index, err);
}

bool
xm_shared_queue_is_out_of_order(const struct xm_shared_cl *share)
{
    return share->queue && xm_ocl_queue_is_out_of_order(share->queue);
}

enum xm_status
xm_engine_create_in(size_t index, const struct xm_config *config,
                    const struct xm_shared_cl *share, struct xm_engine **out,
                    struct xm_error *err)
{
    *out = NULL;
    const struct xm_device_info *infos;
    size_t n;
    XM_TRY(xm_ocl_list(&infos, &n, err));
    if (n == 0)
        return xm_fail(err, XM_NOT_FOUND,
                       "there is no OpenCL device: no driver is installed, or none "
                       "reports a device (see clinfo)");
    if (index >= n)
        return xm_fail(err, XM_NOT_FOUND,
                       "there is no device %zu: %zu OpenCL device%s present", index, n,
                       n == 1 ? " is" : "s are");
    warn_of_guess(&infos[index]);
    return xm_ocl_engine_create(index, config, share, out, err);
}

enum xm_status
xm_engine_init(struct xm_engine *e, const struct xm_engine_ops *ops,
               const struct xm_device_info *info, const struct xm_config *config,
               struct xm_error *err)
{
    e->ops = ops;
    e->info = *info;
    if (config)
        e->config = *config;
    else
        xm_config_init(&e->config);
    if (!e->config.finalised)
        XM_TRY(xm_config_finalise(&e->config, info, NULL, NULL, err));
    atomic_init(&e->refs, 1);
    atomic_init(&e->kernels_built, 0);
    atomic_init(&e->kernels_loaded, 0);
    atomic_init(&e->expected, 0);
    atomic_init(&e->launches_built, 0);
    atomic_init(&e->cache_bytes, 0);
    atomic_init(&e->build_ns, 0);
    atomic_init(&e->is_lost, false);
    if (pthread_mutex_init(&e->stats_lock, NULL))
        return xm_no_memory(err, "a lock");
    if (pthread_mutex_init(&e->kernel_lock, NULL)) {
        pthread_mutex_destroy(&e->stats_lock);
        return xm_no_memory(err, "a lock");
    }
    return XM_OK;
}

void
xm_engine_fini(struct xm_engine *e)
{
    pthread_mutex_destroy(&e->kernel_lock);
    pthread_mutex_destroy(&e->stats_lock);
}

void
xm_engine_ref(struct xm_engine *engine)
{
    atomic_fetch_add(&engine->refs, 1);
}

static void
destroy_kernel(struct xm_engine *e, struct xm_kernel *k)
{
    char *name = k->name, *defines = k->defines;
    e->ops->kernel_destroy(k);
    xm_free(name);
    xm_free(defines);
}

void
xm_engine_unref(struct xm_engine *engine)
{
    if (!engine || atomic_fetch_sub(&engine->refs, 1) != 1)
        return;
    for (size_t i = 0; i < engine->n_kernels; i++)
        destroy_kernel(engine, engine->kernels[i]);
    xm_free(engine->kernels);
    xm_hash_free(&engine->kernel_index);
    while (engine->refused) {
        struct xm_refused_kernel *r = engine->refused;
        engine->refused = r->next;
        xm_free(r->name);
        xm_free(r->defines);
        xm_free(r);
    }
    engine->ops->destroy(engine);
}

const struct xm_device_info *
xm_engine_info(const struct xm_engine *engine)
{
    return &engine->info;
}

const struct xm_config *
xm_engine_config(const struct xm_engine *engine)
{
    return &engine->config;
}

void
xm_engine_memory_stats(const struct xm_engine *engine, struct xm_memory_stats *out)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&engine->stats_lock;
    pthread_mutex_lock(lock);
    *out = engine->stats;
    pthread_mutex_unlock(lock);
}

bool
xm_engine_only_counts(const struct xm_engine *engine)
{
    return engine->ops->only_counts;
}

void *
xm_engine_cl_context(const struct xm_engine *engine)
{
    return engine->ops->cl_context ? engine->ops->cl_context(engine) : NULL;
}

void *
xm_engine_cl_device(const struct xm_engine *engine)
{
    return engine->ops->cl_device ? engine->ops->cl_device(engine) : NULL;
}

bool
xm_engine_has_usm(const struct xm_engine *engine)
{
    return engine->ops->has_usm && engine->ops->has_usm(engine);
}

/* ---- a lost device --------------------------------------------------------------- */

bool
xm_engine_is_lost(const struct xm_engine *engine)
{
    return atomic_load(&engine->is_lost);
}

static enum xm_status
check_alive(const struct xm_engine *e, struct xm_error *err)
{
    if (!atomic_load(&e->is_lost))
        return XM_OK;
    return xm_fail(err, XM_LOST, "%s is lost: %s", e->info.name, e->lost.text);
}

/* What a call on the device has returned, with its sentence in err. */
static enum xm_status
settle(struct xm_engine *e, enum xm_status status, struct xm_error *err)
{
    if (status != XM_LOST)
        return status;
    pthread_mutex_lock(&e->stats_lock);
    if (!atomic_load(&e->is_lost)) {
        if (err && err->status == XM_LOST)
            e->lost = *err;
        else
            xm_fail(&e->lost, XM_LOST, "a call did not come back");
        xm_error_prefix(err, "%s is lost", e->info.name);
        atomic_store(&e->is_lost, true);
    }
    pthread_mutex_unlock(&e->stats_lock);
    return status;
}

/* ---- buffers -------------------------------------------------------------------- */

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

/* An empty buffer of `engine` with one reference. */
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
        return xm_fail(err, XM_INVALID, "a device buffer of 0 bytes was asked for");
    uint64_t max = engine->info.max_alloc_bytes;
    if (bytes > max)
        return xm_fail(err, XM_NO_MEMORY,
                       "a buffer of %" PRIu64 " bytes is over the largest allocation of "
                       "%s, %" PRIu64 " bytes",
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
    XM_TRY(check_alive(engine, err));
    XM_TRY(check_size(engine, bytes, err));
    XM_TRY(new_buffer(engine, bytes, &b, err));
    enum xm_status status = engine->ops->buffer_create(b, use, err);
    return keep_buffer(b, settle(engine, status, err), out);
}

static enum xm_status
wrap_weight(struct xm_engine *engine, enum xm_buffer_use use, const void *bytes,
            uint64_t n_bytes, struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_buffer *b;
    XM_TRY(check_alive(engine, err));
    XM_TRY(check_size(engine, n_bytes, err));
    XM_TRY(new_buffer(engine, n_bytes, &b, err));
    enum xm_status status = engine->ops->buffer_from_host(b, use, bytes, err);
    return keep_buffer(b, settle(engine, status, err), out);
}

enum xm_status
xm_buffer_from_host(struct xm_engine *engine, const void *bytes, uint64_t n_bytes,
                    struct xm_buffer **out, struct xm_error *err)
{
    return wrap_weight(engine, XM_USE_WEIGHT, bytes, n_bytes, out, err);
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
    return xm_fail(err, XM_UNSUPPORTED, "%s has no %s memory that others could share",
                   engine->info.name, xm_memory_kind_text(kind));
}

enum xm_status
xm_buffer_create_shared(struct xm_engine *engine, enum xm_memory_kind kind,
                        uint64_t bytes, struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_buffer *b;
    XM_TRY(check_alive(engine, err));
    XM_TRY(check_size(engine, bytes, err));
    if (!engine->ops->buffer_create_shared ||
        (kind != XM_MEMORY_CL && !xm_engine_has_usm(engine)))
        return fail_unshared(engine, kind, err);
    XM_TRY(new_buffer(engine, bytes, &b, err));
    b->kind = kind;
    b->is_shared = true;
    enum xm_status status = engine->ops->buffer_create_shared(b, err);
    return keep_buffer(b, settle(engine, status, err), out);
}

enum xm_status
xm_buffer_wrap(struct xm_engine *engine, enum xm_memory_kind kind, void *native,
               uint64_t bytes, struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_buffer *b;
    XM_TRY(check_alive(engine, err));
    XM_TRY(check_size(engine, bytes, err));
    if (!engine->ops->buffer_wrap || (kind != XM_MEMORY_CL && !xm_engine_has_usm(engine)))
        return fail_unshared(engine, kind, err);
    XM_TRY(new_buffer(engine, bytes, &b, err));
    b->kind = kind;
    b->native = native;
    b->is_shared = b->is_foreign = true;
    enum xm_status status = engine->ops->buffer_wrap(b, err);
    return keep_buffer(b, settle(engine, status, err), out);
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
    XM_TRY(check_alive(parent->engine, err));
    XM_TRY(new_buffer(parent->engine, bytes, &b, err));
    b->root = parent->root ? parent->root : parent;
    b->offset = parent->offset + offset;
    b->kind = parent->kind;
    b->host = parent->host ? (char *)parent->host + offset : NULL;
    b->is_shared = parent->is_shared;
    enum xm_status status =
        settle(b->engine, parent->engine->ops->buffer_view(b, err), err);
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

/* ---- kernels -------------------------------------------------------------------- */

static uint64_t
hash_of(const char *name, const char *defines)
{
    const uint64_t h = xm_hash_bytes(XM_HASH_SEED, name, strlen(name));
    return xm_hash_bytes(h, defines, strlen(defines));
}

struct xm_kernel *
xm_engine_find_kernel(const struct xm_engine *e, const char *name, const char *defines)
{
    struct xm_hash_probe p = xm_hash_begin(hash_of(name, defines));
    while (xm_hash_next(&e->kernel_index, &p)) {
        struct xm_kernel *k = e->kernels[p.item];
        if (strcmp(k->name, name) == 0 && strcmp(k->defines, defines) == 0)
            return k;
    }
    return NULL;
}

static enum xm_status
make_room_for_kernel(struct xm_engine *e, struct xm_error *err)
{
    struct xm_kernel **grown =
        xm_grow(e->kernels, &e->kernel_capacity, e->n_kernels + 1, sizeof(*grown));
    e->kernels = grown ? grown : e->kernels;
    return grown && xm_hash_reserve(&e->kernel_index, e->n_kernels + 1)
               ? XM_OK
               : xm_no_memory(err, "%zu kernels", e->n_kernels + 1);
}

/* The first lines of a build log; the rest mostly follows from them. */
static int
beginning_of(const char *log)
{
    enum { LINES = 12, BYTES = 2000 };
    size_t n = 0;
    for (int line = 0; line < LINES && log[n] && n < BYTES; line++) {
        n += strcspn(log + n, "\n");
        n += log[n] == '\n' && line + 1 < LINES;
    }
    return (int)(n < BYTES ? n : BYTES);
}

static void
warn_of_refusal(const struct xm_engine *e, const char *name, const char *defines,
                const char *log)
{
    xm_log(
        XM_LOG_WARNING,
        "kernel '%s' (%s) does not build on %s; the next variant of its step is taken, "
        "if there is one:\n%.*s",
        name, defines, e->info.name, log ? beginning_of(log) : 0, log ? log : "");
}

/* Takes over the strings. Without memory it is forgotten and will be tried again. */
static void
remember_refusal(struct xm_engine *e, char *name, char *defines,
                 const struct xm_error *why)
{
    struct xm_refused_kernel *r = xm_calloc(1, sizeof(*r));
    if (!r) {
        xm_free(name);
        xm_free(defines);
        return;
    }
    *r = (struct xm_refused_kernel){e->refused, name, defines, *why};
    e->refused = r;
}

static const struct xm_refused_kernel *
find_refusal(const struct xm_engine *e, const char *name, const char *defines)
{
    const struct xm_refused_kernel *r = e->refused;
    while (r && (strcmp(r->name, name) != 0 || strcmp(r->defines, defines) != 0))
        r = r->next;
    return r;
}

static enum xm_status
build_kernel(struct xm_engine *e, const char *name, const char *defines,
             struct xm_kernel **out, struct xm_error *err)
{
    char *own_name = xm_strdup(name), *own_defines = xm_strdup(defines);
    struct xm_kernel *k = NULL;
    struct xm_build_report report = {0};
    struct xm_error why = {0};
    enum xm_status status;
    const double start = xm_now();
    if (own_name && own_defines)
        status = xm_defines_check(defines, &why);
    else
        status = xm_no_memory(&why, "kernel '%s'", name);
    xm_error_prefix(&why, "kernel '%s'", name);
    if (status == XM_OK)
        status = e->ops->kernel_create(e, name, defines, &k, &report, &why);
    atomic_fetch_add(&e->build_ns, (uint64_t)(1e9 * (xm_now() - start)));
    if (status == XM_NOT_BUILT)
        warn_of_refusal(e, name, defines, report.log);
    xm_free(report.log);
    if (status == XM_NOT_BUILT) {
        remember_refusal(e, own_name, own_defines, &why);
        own_name = own_defines = NULL;
    }
    if (status != XM_OK) {
        xm_free(own_name);
        xm_free(own_defines);
        xm_fail(err, status, "%s", why.text);
        return settle(e, status, err);
    }
    k->name = own_name;
    k->defines = own_defines;
    k->is_new = report.compiled;
    atomic_fetch_add(report.compiled ? &e->kernels_built : &e->kernels_loaded, 1);
    *out = k;
    return XM_OK;
}

/* With the kernel lock held. */
static enum xm_status
find_or_build(struct xm_engine *e, const char *name, const char *defines,
              struct xm_kernel **out, struct xm_error *err)
{
    *out = xm_engine_find_kernel(e, name, defines);
    if (*out)
        return XM_OK;
    const struct xm_refused_kernel *refusal = find_refusal(e, name, defines);
    if (refusal)
        return xm_fail(err, XM_NOT_BUILT, "%s", refusal->why.text);
    XM_TRY(check_alive(e, err));
    XM_TRY(make_room_for_kernel(e, err));
    XM_TRY(build_kernel(e, name, defines, out, err));
    xm_hash_add(&e->kernel_index, hash_of(name, defines), (uint32_t)e->n_kernels);
    e->kernels[e->n_kernels++] = *out;
    return XM_OK;
}

enum xm_status
xm_engine_kernel(struct xm_engine *engine, const char *name, const char *defines,
                 struct xm_kernel **out, struct xm_error *err)
{
    pthread_mutex_lock(&engine->kernel_lock);
    enum xm_status status = find_or_build(engine, name, defines, out, err);
    pthread_mutex_unlock(&engine->kernel_lock);
    return status;
}

/* Whether `e` has built a kernel like `k`. */
static bool
has_kernel(struct xm_engine *e, const struct xm_kernel *k)
{
    pthread_mutex_lock(&e->kernel_lock);
    bool has = xm_engine_find_kernel(e, k->name, k->defines) != NULL;
    pthread_mutex_unlock(&e->kernel_lock);
    return has;
}

enum xm_status
xm_engine_kernel_bytes(struct xm_engine *engine, struct xm_engine *like,
                       xm_kernel_bytes_fn fn, void *ctx, struct xm_error *err)
{
    enum xm_status s = XM_OK;
    if (!engine->ops->kernel_bytes)
        return XM_OK;
    pthread_mutex_lock(&engine->kernel_lock);
    for (size_t i = 0; i < engine->n_kernels && s == XM_OK; i++) {
        struct xm_kernel *k = engine->kernels[i];
        if (!like || has_kernel(like, k))
            s = engine->ops->kernel_bytes(engine, k, fn, ctx, err);
    }
    pthread_mutex_unlock(&engine->kernel_lock);
    return s;
}

/* ---- queues --------------------------------------------------------------------- */

enum xm_status
xm_queue_create(struct xm_engine *engine, struct xm_queue **out, struct xm_error *err)
{
    *out = NULL;
    XM_TRY(check_alive(engine, err));
    XM_TRY(settle(engine, engine->ops->queue_create(engine, out, err), err));
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

/* The launch with its zeros filled in, or a sentence that says which size is wrong. */
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
            return xm_fail(err, XM_INVALID, "kernel '%s': a launch of 0 work-items",
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
    XM_TRY(check_launch(&q->engine->info, k, launch, &full, err));
    XM_TRY(check_args(&q->engine->info, k, args, n_args, err));
    XM_TRY(check_alive(q->engine, err));
    XM_TRY(settle(q->engine, q->engine->ops->run(q, k, args, n_args, &full, err), err));
    q->kernels++;
    if (!xm_debug_on(XM_DEBUG_SYNC))
        return XM_OK;
    enum xm_status status = xm_queue_finish(q, err);
    xm_error_prefix(err, "after kernel '%s'", k->name);
    return status;
}

/* A host function as it lies in a queue, with its copy of the caller's bytes. */
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
    XM_TRY(check_alive(q->engine, err));
    const size_t bytes = sizeof(struct host_call) + ctx_bytes;
    struct host_call *c = xm_malloc(bytes);
    if (!c)
        return xm_no_memory(err, "a host step");
    *c = (struct host_call){q, fn};
    if (ctx_bytes)
        memcpy(c->ctx, ctx, ctx_bytes);
    enum xm_status status = q->engine->ops->run_host(q, name, call_host, c, bytes, err);
    xm_free(c);
    return settle(q->engine, status, err);
}

/* What a wait returns: its own failure, or that of a host function it has waited for. */
static enum xm_status
settle_wait(struct xm_queue *q, enum xm_status waited, struct xm_error *err)
{
    enum xm_status status = settle(q->engine, waited, err);
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
    XM_TRY(check_alive(q->engine, err));
    return settle(q->engine, q->engine->ops->write(q, dst, offset, src, bytes, err), err);
}

enum xm_status
xm_queue_read(struct xm_queue *q, const struct xm_buffer *src, uint64_t offset, void *dst,
              uint64_t bytes, struct xm_error *err)
{
    XM_TRY(check_range("a read", src, offset, bytes, err));
    if (bytes == 0)
        return XM_OK;
    q->waits++;
    XM_TRY(check_alive(q->engine, err));
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
    XM_TRY(check_alive(q->engine, err));
    return settle(q->engine,
                  q->engine->ops->copy(q, src, src_offset, dst, dst_offset, bytes, err),
                  err);
}

enum xm_status
xm_queue_fill(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset, uint8_t value,
              uint64_t bytes, struct xm_error *err)
{
    XM_TRY(check_range("a fill", dst, offset, bytes, err));
    if (bytes == 0)
        return XM_OK;
    XM_TRY(check_alive(q->engine, err));
    return settle(q->engine, q->engine->ops->fill(q, dst, offset, value, bytes, err),
                  err);
}

enum xm_status
xm_queue_flush(struct xm_queue *q, struct xm_error *err)
{
    XM_TRY(check_alive(q->engine, err));
    return settle(q->engine, q->engine->ops->flush(q, err), err);
}

enum xm_status
xm_queue_keep_pace(struct xm_queue *q, struct xm_error *err)
{
    XM_TRY(check_alive(q->engine, err));
    return q->engine->ops->keep_pace
               ? settle(q->engine, q->engine->ops->keep_pace(q, err), err)
               : XM_OK;
}

enum xm_status
xm_queue_finish(struct xm_queue *q, struct xm_error *err)
{
    q->waits++;
    XM_TRY(check_alive(q->engine, err));
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
    return q->engine->ops->queue_native ? q->engine->ops->queue_native(q) : NULL;
}
