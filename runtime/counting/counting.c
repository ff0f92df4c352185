/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/counting/counting.h"

#include "runtime/engine_ops.h"
#include "runtime/util/memory.h"

static void
destroy_engine(struct xm_engine *e)
{
    xm_engine_fini(e);
    xm_free(e);
}

/* ---- buffers: sizes without bytes ------------------------------------------------- */

static enum xm_status
create_buffer(struct xm_buffer *b, enum xm_buffer_use use, struct xm_error *err)
{
    (void)err;
    b->kind = xm_memory_kind_for(&b->engine->info, use);
    return XM_OK;
}

static enum xm_status
buffer_from_host(struct xm_buffer *b, enum xm_buffer_use use, const void *bytes,
                 struct xm_error *err)
{
    if (!xm_memory_is_shared(b->engine, use, bytes, b->bytes))
        return create_buffer(b, use, err);
    b->kind = XM_MEMORY_MAPPED;
    return XM_OK;
}

static enum xm_status
view_buffer(struct xm_buffer *b, struct xm_error *err)
{
    (void)b, (void)err;
    return XM_OK;
}

static void
release_buffer(struct xm_buffer *b)
{
    (void)b;
}

/* ---- kernels and queues: names without code ---------------------------------------- */

static enum xm_status
create_kernel(struct xm_engine *e, const char *name, const char *defines,
              struct xm_kernel **out, struct xm_build_report *report,
              struct xm_error *err)
{
    (void)e, (void)defines;
    *out = xm_calloc(1, sizeof(**out));
    report->compiled = *out != NULL; /* every kernel counts as compiled */
    return *out ? XM_OK : xm_no_memory(err, "kernel '%s'", name);
}

static void
destroy_kernel(struct xm_kernel *k)
{
    xm_free(k);
}

static enum xm_status
create_queue(struct xm_engine *e, struct xm_queue **out, struct xm_error *err)
{
    (void)e;
    *out = xm_calloc(1, sizeof(**out));
    return *out ? XM_OK : xm_no_memory(err, "a queue");
}

static void
destroy_queue(struct xm_queue *q)
{
    xm_free(q);
}

static enum xm_status
run(struct xm_queue *q, struct xm_kernel *k, const struct xm_arg *args, uint32_t n_args,
    const struct xm_launch *launch, struct xm_error *err)
{
    (void)args, (void)n_args, (void)err;
    if (xm_launch_kinds_add(&k->launched, launch))
        atomic_fetch_add(&q->engine->launches_built, 1);
    return XM_OK;
}

static enum xm_status
run_host(struct xm_queue *q, const char *name, void (*fn)(void *), const void *ctx,
         size_t ctx_bytes, struct xm_error *err)
{
    (void)q, (void)name, (void)fn, (void)ctx, (void)ctx_bytes, (void)err;
    return XM_OK;
}

static enum xm_status
write_bytes(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset, const void *src,
            uint64_t bytes, struct xm_error *err)
{
    (void)q, (void)dst, (void)offset, (void)src, (void)bytes, (void)err;
    return XM_OK;
}

static enum xm_status
read_bytes(struct xm_queue *q, const struct xm_buffer *src, uint64_t offset, void *dst,
           uint64_t bytes, struct xm_error *err)
{
    (void)q, (void)src, (void)offset, (void)dst, (void)bytes, (void)err;
    return XM_OK;
}

static enum xm_status
copy_bytes(struct xm_queue *q, const struct xm_buffer *src, uint64_t src_offset,
           struct xm_buffer *dst, uint64_t dst_offset, uint64_t bytes,
           struct xm_error *err)
{
    (void)q, (void)src, (void)src_offset, (void)dst, (void)dst_offset, (void)bytes;
    (void)err;
    return XM_OK;
}

static enum xm_status
fill_bytes(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset, uint8_t value,
           uint64_t bytes, struct xm_error *err)
{
    (void)q, (void)dst, (void)offset, (void)value, (void)bytes, (void)err;
    return XM_OK;
}

static enum xm_status
do_nothing(struct xm_queue *q, struct xm_error *err)
{
    (void)q, (void)err;
    return XM_OK;
}

static const struct xm_engine_ops counting_ops = {
    .only_counts = true,
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
    .run_host = run_host,
    .write = write_bytes,
    .read = read_bytes,
    .copy = copy_bytes,
    .fill = fill_bytes,
    .flush = do_nothing,
    .finish = do_nothing,
};

enum xm_status
xm_counting_engine_create(const struct xm_device_info *info,
                          const struct xm_config *config, struct xm_engine **out,
                          struct xm_error *err)
{
    *out = NULL;
    struct xm_engine *e = xm_calloc(1, sizeof(*e));
    if (!e)
        return xm_no_memory(err, "an engine");
    enum xm_status status = xm_engine_init(e, &counting_ops, info, config, err);
    if (status != XM_OK) {
        xm_free(e);
        return status;
    }
    *out = e;
    return XM_OK;
}

void
xm_counting_forget_peaks(struct xm_engine *engine)
{
    pthread_mutex_lock(&engine->stats_lock);
    struct xm_memory_stats *s = &engine->stats;
    for (int k = 0; k < XM_MEMORY_KIND_COUNT; k++)
        s->peak[k] = s->now[k];
    s->total_peak = s->total_now;
    s->largest = 0;
    pthread_mutex_unlock(&engine->stats_lock);
}

enum xm_status
xm_counting_build(const struct xm_engine *counted, struct xm_engine *engine,
                  struct xm_error *err)
{
    for (size_t i = 0; i < counted->n_kernels; i++) {
        const struct xm_kernel *k = counted->kernels[i];
        struct xm_kernel *built = NULL;
        XM_TRY(xm_engine_kernel(engine, k->name, k->defines, &built, err));
    }
    return XM_OK;
}
