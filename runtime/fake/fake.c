/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/fake/fake.h"

#include <string.h>

#include "runtime/engine_ops.h"
#include "runtime/util/memory.h"

enum { MAX_FUNCTIONS = 64, MAX_REFUSED = 64 };

struct function {
    const char *name;
    xm_fake_fn fn;
    void *ctx;
};

struct fake_engine {
    struct xm_engine base;
    uint64_t calls[XM_FAKE_ANY + 1];
    enum xm_fake_call fail_call;
    uint64_t fail_countdown; /* calls until one fails; 0: none */
    bool failed, loses;
    struct xm_fake_launch *launches;
    size_t n_launches, capacity;
    struct function functions[MAX_FUNCTIONS];
    size_t n_functions;
    const char *refused[MAX_REFUSED];
    size_t n_refused;
};

static struct fake_engine *
fake(const struct xm_engine *e)
{
    return (struct fake_engine *)e;
}

/* Counts a call and fails if it is the one that a test asked to fail. */
static enum xm_status
enter(struct xm_engine *base, enum xm_fake_call call, struct xm_error *err)
{
    static const char *const names[] = {"alloc", "view",   "kernel",   "queue",  "run",
                                        "bind",  "rebind", "run_host", "write",  "read",
                                        "copy",  "fill",   "flush",    "finish", "pace"};
    struct fake_engine *e = fake(base);
    e->calls[call]++;
    e->calls[XM_FAKE_ANY]++;
    if (e->fail_countdown == 0 || (e->fail_call != call && e->fail_call != XM_FAKE_ANY) ||
        --e->fail_countdown > 0)
        return XM_OK;
    e->failed = true;
    if (e->loses)
        return xm_fail(err, XM_LOST, "the fake device does not come back from this %s",
                       names[call]);
    return xm_fail(err, call == XM_FAKE_ALLOC ? XM_NO_MEMORY : XM_DEVICE,
                   "the fake device fails this %s", names[call]);
}

static void
destroy_engine(struct xm_engine *base)
{
    struct fake_engine *e = fake(base);
    xm_engine_fini(base);
    xm_free(e->launches);
    xm_free(e);
}

/* ---- buffers -------------------------------------------------------------------- */

static enum xm_status
create_buffer(struct xm_buffer *b, enum xm_buffer_use use, struct xm_error *err)
{
    const struct xm_device_info *info = &b->engine->info;
    XM_TRY(enter(b->engine, XM_FAKE_ALLOC, err));
    b->native = xm_malloc(b->bytes);
    if (!b->native)
        return xm_no_memory(err, "a buffer of the fake device");
    memset(b->native, 0xcd, b->bytes); /* undefined contents, visible in tests */
    b->kind = xm_memory_kind_for(info, use);
    if (xm_device_has(info, XM_CAP_HOST_VISIBLE) || b->kind == XM_MEMORY_USM_HOST)
        b->host = b->native;
    return XM_OK;
}

static enum xm_status
buffer_from_host(struct xm_buffer *b, enum xm_buffer_use use, const void *bytes,
                 struct xm_error *err)
{
    if (b->engine->config.copy_weights == XM_NO && use != XM_USE_OWN_WEIGHT) {
        XM_TRY(enter(b->engine, XM_FAKE_ALLOC, err));
        b->kind = XM_MEMORY_MAPPED;
        b->native = b->host = (void *)(uintptr_t)bytes;
        return XM_OK;
    }
    XM_TRY(create_buffer(b, use, err));
    memcpy(b->native, bytes, b->bytes);
    return XM_OK;
}

static enum xm_status
view_buffer(struct xm_buffer *b, struct xm_error *err)
{
    XM_TRY(enter(b->engine, XM_FAKE_VIEW, err));
    b->native = (char *)b->root->native + b->offset;
    return XM_OK;
}

static void
release_buffer(struct xm_buffer *b)
{
    if (!b->root && b->kind != XM_MEMORY_MAPPED)
        xm_free(b->native);
}

/* ---- kernels and queues --------------------------------------------------------- */

static enum xm_status
create_kernel(struct xm_engine *e, const char *name, const char *defines,
              struct xm_kernel **out, struct xm_build_report *report,
              struct xm_error *err)
{
    (void)defines;
    XM_TRY(enter(e, XM_FAKE_KERNEL, err));
    xm_engine_say_building(e, name);
    for (size_t i = 0; i < fake(e)->n_refused; i++) {
        if (strcmp(fake(e)->refused[i], name) != 0)
            continue;
        report->log = xm_strdup("warning: it is fake\nerror: the fake compiler refuses");
        return xm_fail(err, XM_NOT_BUILT, "kernel '%s': error: the fake compiler refuses",
                       name);
    }
    *out = xm_calloc(1, sizeof(**out));
    if (!*out)
        return xm_no_memory(err, "kernel '%s'", name);
    report->compiled = true;
    return XM_OK;
}

static void
destroy_kernel(struct xm_kernel *k)
{
    xm_free(k);
}

static enum xm_status
create_queue(struct xm_engine *e, struct xm_queue **out, struct xm_error *err)
{
    XM_TRY(enter(e, XM_FAKE_QUEUE, err));
    *out = xm_calloc(1, sizeof(**out));
    return *out ? XM_OK : xm_no_memory(err, "a queue");
}

static void
destroy_queue(struct xm_queue *q)
{
    xm_free(q);
}

static enum xm_status
record_launch(struct fake_engine *e, struct xm_fake_launch **out, struct xm_error *err)
{
    struct xm_fake_launch *grown =
        xm_grow(e->launches, &e->capacity, e->n_launches + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "the record of a launch");
    e->launches = grown;
    *out = &grown[e->n_launches];
    return XM_OK;
}

static enum xm_status
run(struct xm_queue *q, struct xm_kernel *k, const struct xm_arg *args, uint32_t n_args,
    const struct xm_launch *launch, struct xm_error *err)
{
    struct fake_engine *e = fake(q->engine);
    struct xm_fake_launch *l;
    XM_TRY(enter(q->engine, XM_FAKE_RUN, err));
    XM_TRY(record_launch(e, &l, err));
    l->kernel = k->name;
    l->defines = k->defines;
    l->n_args = n_args;
    l->launch = *launch;
    l->label = q->label;
    l->paces = e->calls[XM_FAKE_PACE];
    if (n_args)
        memcpy(l->args, args, n_args * sizeof(*args));
    e->n_launches++;
    for (size_t i = 0; i < e->n_functions; i++)
        if (strcmp(e->functions[i].name, k->name) == 0)
            e->functions[i].fn(l, e->functions[i].ctx);
    return XM_OK;
}

struct bound {
    uint32_t n_args;
    struct xm_arg args[];
};

static enum xm_status
bind(struct xm_queue *q, struct xm_kernel *k, const struct xm_arg *args, uint32_t n_args,
     void **out, struct xm_error *err)
{
    (void)k;
    XM_TRY(enter(q->engine, XM_FAKE_BIND, err));
    struct bound *b = xm_malloc(sizeof(*b) + n_args * sizeof(*args));
    if (!b)
        return xm_no_memory(err, "the arguments of a launch");
    b->n_args = n_args;
    if (n_args)
        memcpy(b->args, args, n_args * sizeof(*args));
    *out = b;
    return XM_OK;
}

static enum xm_status
rebind(struct xm_queue *q, struct xm_kernel *k, void *bound, uint32_t i,
       const struct xm_arg *arg, struct xm_error *err)
{
    (void)k;
    XM_TRY(enter(q->engine, XM_FAKE_REBIND, err));
    ((struct bound *)bound)->args[i] = *arg;
    return XM_OK;
}

static enum xm_status
run_bound(struct xm_queue *q, struct xm_kernel *k, void *bound,
          const struct xm_launch *launch, struct xm_error *err)
{
    const struct bound *b = bound;
    return run(q, k, b->args, b->n_args, launch, err);
}

static enum xm_status
run_host(struct xm_queue *q, const char *name, void (*fn)(void *), const void *ctx,
         size_t ctx_bytes, struct xm_error *err)
{
    (void)name;
    XM_TRY(enter(q->engine, XM_FAKE_RUN_HOST, err));
    void *copy = xm_malloc(ctx_bytes);
    if (!copy)
        return xm_no_memory(err, "a host step");
    if (ctx_bytes)
        memcpy(copy, ctx, ctx_bytes);
    fn(copy);
    xm_free(copy);
    return XM_OK;
}

static enum xm_status
write_bytes(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset, const void *src,
            uint64_t bytes, struct xm_error *err)
{
    XM_TRY(enter(q->engine, XM_FAKE_WRITE, err));
    memcpy((char *)dst->native + offset, src, bytes);
    return XM_OK;
}

static enum xm_status
read_bytes(struct xm_queue *q, const struct xm_buffer *src, uint64_t offset, void *dst,
           uint64_t bytes, struct xm_error *err)
{
    XM_TRY(enter(q->engine, XM_FAKE_READ, err));
    memcpy(dst, (const char *)src->native + offset, bytes);
    return XM_OK;
}

static enum xm_status
copy_bytes(struct xm_queue *q, const struct xm_buffer *src, uint64_t src_offset,
           struct xm_buffer *dst, uint64_t dst_offset, uint64_t bytes,
           struct xm_error *err)
{
    XM_TRY(enter(q->engine, XM_FAKE_COPY, err));
    memmove((char *)dst->native + dst_offset, (const char *)src->native + src_offset,
            bytes);
    return XM_OK;
}

static enum xm_status
fill_bytes(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset, uint8_t value,
           uint64_t bytes, struct xm_error *err)
{
    XM_TRY(enter(q->engine, XM_FAKE_FILL, err));
    memset((char *)dst->native + offset, value, bytes);
    return XM_OK;
}

static enum xm_status
flush(struct xm_queue *q, struct xm_error *err)
{
    return enter(q->engine, XM_FAKE_FLUSH, err);
}

static enum xm_status
finish(struct xm_queue *q, struct xm_error *err)
{
    return enter(q->engine, XM_FAKE_FINISH, err);
}

static enum xm_status
keep_pace(struct xm_queue *q, struct xm_error *err)
{
    return enter(q->engine, XM_FAKE_PACE, err);
}

static const struct xm_engine_ops fake_ops = {
    .destroy = destroy_engine,
    .buffer_create = create_buffer,
    .buffer_from_host = buffer_from_host,
    .buffer_view = view_buffer,
    .buffer_release = release_buffer,
    .kernel_create = create_kernel,
    .kernel_destroy = destroy_kernel,
    .queue_create = create_queue,
    .queue_destroy = destroy_queue,
    .run = run,
    .bind = bind,
    .unbind = xm_free,
    .rebind = rebind,
    .run_bound = run_bound,
    .run_host = run_host,
    .write = write_bytes,
    .read = read_bytes,
    .copy = copy_bytes,
    .fill = fill_bytes,
    .flush = flush,
    .finish = finish,
    .keep_pace = keep_pace,
};

/* ---- for tests ------------------------------------------------------------------ */

enum xm_status
xm_fake_engine_create(const struct xm_device_info *info, const struct xm_config *config,
                      struct xm_engine **out, struct xm_error *err)
{
    *out = NULL;
    struct fake_engine *e = xm_calloc(1, sizeof(*e));
    if (!e)
        return xm_no_memory(err, "the fake device");
    enum xm_status status = xm_engine_init(&e->base, &fake_ops, info, config, err);
    if (status != XM_OK) {
        xm_free(e);
        return status;
    }
    *out = &e->base;
    return XM_OK;
}

void
xm_fake_fail(struct xm_engine *engine, enum xm_fake_call call, uint64_t n)
{
    fake(engine)->fail_call = call;
    fake(engine)->fail_countdown = n;
    fake(engine)->failed = fake(engine)->loses = false;
}

void
xm_fake_lose(struct xm_engine *engine, enum xm_fake_call call, uint64_t n)
{
    xm_fake_fail(engine, call, n);
    fake(engine)->loses = true;
}

bool
xm_fake_failed(const struct xm_engine *engine)
{
    return fake(engine)->failed;
}

bool
xm_fake_refuse_build(struct xm_engine *engine, const char *name)
{
    struct fake_engine *e = fake(engine);
    if (e->n_refused == MAX_REFUSED)
        return false;
    e->refused[e->n_refused++] = name;
    return true;
}

uint64_t
xm_fake_calls(const struct xm_engine *engine, enum xm_fake_call call)
{
    return fake(engine)->calls[call];
}

const struct xm_fake_launch *
xm_fake_launches(const struct xm_engine *engine, size_t *n)
{
    *n = fake(engine)->n_launches;
    return fake(engine)->launches;
}

void
xm_fake_clear_launches(struct xm_engine *engine)
{
    fake(engine)->n_launches = 0;
}

bool
xm_fake_kernel(struct xm_engine *engine, const char *name, xm_fake_fn fn, void *ctx)
{
    struct fake_engine *e = fake(engine);
    if (e->n_functions == MAX_FUNCTIONS)
        return false;
    e->functions[e->n_functions++] = (struct function){name, fn, ctx};
    return true;
}

void *
xm_fake_bytes(const struct xm_fake_launch *launch, uint32_t i)
{
    const struct xm_arg *a = &launch->args[i];
    return a->kind == XM_ARG_BUFFER && a->buffer ? a->buffer->native : NULL;
}
