/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the core's compiled models (struct xm_compiled) by programs.
 */
#include "plugin/gpu/blob.h"
#include "plugin/gpu/gpu_plugin.h"
#include "plugin/gpu/gpu_properties.h"
#include "plugin/gpu/program_exec_graph.h"
#include "plugin/kv/kv_pool.h"
#include "plugin/lower/expert_caches.h"
#include "plugin/lower/weight_pages.h"
#include "runtime/kept.h"
#include "runtime/multiply_rate.h"
#include "runtime/read_rate.h"

static enum xm_status
compiled_get_property(struct xm_compiled *base, const char *key, struct xm_strbuf *out,
                      struct xm_error *err)
{
    const struct xm_gpu_compiled *c = (const struct xm_gpu_compiled *)base;
    const struct xm_program *p = c->program;
    const struct xm_gpu_subject subject = {.device = xm_engine_info(p->engine),
                                           .config = &p->config,
                                           .program = p,
                                           .model_name = c->model_name,
                                           .plugin = c->plugin,
                                           .index = c->index,
                                           .n_devices = c->n_devices};
    return xm_gpu_property(subject, key, out, err);
}

static void
compiled_print(struct xm_compiled *c, struct xm_strbuf *out)
{
    xm_program_print(xm_gpu_compiled_of(c)->program, out);
}

void
xm_gpu_compiled_free(struct xm_gpu_compiled *c)
{
    if (!c)
        return;
    xm_program_unref(c->program);
    xm_context_unref(c->context);
    xm_free(c->model_name);
    xm_free(c);
}

static void
compiled_destroy(struct xm_compiled *base)
{
    xm_gpu_compiled_free(xm_gpu_compiled_of(base));
}

static void
compiled_expect(struct xm_compiled *c, const uint64_t *positions, size_t n)
{
    const struct xm_program *p = xm_gpu_compiled_of(c)->program;
    if (p->kv_pool)
        xm_kv_pool_expect_each(p->kv_pool, positions, n);
}

static bool
compiled_has_room(struct xm_compiled *c, const uint64_t *positions, size_t n)
{
    struct xm_program *p = xm_gpu_compiled_of(c)->program;
    return !p->kv_pool || xm_kv_pool_has_room(p->kv_pool, positions, n);
}

static void
compiled_stats(struct xm_compiled *c, struct xm_compiled_stats *out)
{
    const struct xm_program *p = xm_gpu_compiled_of(c)->program;
    xm_engine_memory_stats(p->engine, &out->memory);
    xm_engine_build_stats(p->engine, &out->builds);
    out->weight_bytes = p->weight_bytes;
    out->host_weight_bytes = p->host_weight_bytes;
    out->weight_bytes_to_come = xm_weight_pages_left(p->weight_pages);
    out->kv_pages = out->kv_pages_used = out->kv_pages_cached = 0;
    for (uint32_t i = 0; p->kv_pool && i < xm_kv_pool_groups(p->kv_pool); i++) {
        struct xm_kv_group_stats of;
        xm_kv_pool_stats(p->kv_pool, i, &of);
        out->kv_pages += of.pages;
        out->kv_pages_used += of.used;
        out->kv_pages_cached += of.cached;
    }
}

static enum xm_status
compiled_expert_cache(struct xm_compiled *c, struct xm_expert_cache_stats *out,
                      struct xm_error *err)
{
    return xm_expert_caches_stats(xm_gpu_compiled_of(c)->program, out, err);
}

static enum xm_status
compiled_read_rate(struct xm_compiled *c, double seconds, double *out,
                   struct xm_error *err)
{
    enum { MOST = 64 };
    const struct xm_program *p = xm_gpu_compiled_of(c)->program;
    const struct xm_device_info *device = xm_engine_info(p->engine);
    const char *dir = p->config.cache_dir;
    struct xm_buffer *dense[MOST];
    size_t n = 0;
    if (seconds <= 0.0)
        return xm_kept_rate_load(dir, device, "reading", out)
                   ? XM_OK
                   : xm_fail(err, XM_NOT_FOUND,
                             "no read rate is recorded for this device");
    for (uint32_t i = 0; i < p->n_weights && n < MOST; i++) {
        if (p->weights[i]->host.experts == 1)
            dense[n++] = p->weights[i]->data;
    }
    XM_TRY(xm_read_rate(p->engine, dense, n, seconds, out, err));
    xm_kept_rate_store(dir, device, "reading", *out);
    return XM_OK;
}

static enum xm_status
compiled_multiply_rate(struct xm_compiled *c, double seconds, double *out,
                       struct xm_error *err)
{
    const struct xm_program *p = xm_gpu_compiled_of(c)->program;
    return xm_multiply_rate(p->engine, p->config.inference_precision, seconds, out, err);
}

static void
compiled_steps(struct xm_compiled *c, xm_step_fact_fn fn, void *ctx)
{
    const struct xm_program *p = xm_gpu_compiled_of(c)->program;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct xm_step *s = &p->steps[i];
        const struct xm_step_fact fact = {s->op, s->name, s->kind == XM_STEP_HOST};
        fn(&fact, ctx);
    }
}

static enum xm_status
compiled_exec_graph(struct xm_compiled *c, struct xm_exec_graph *out,
                    struct xm_error *err)
{
    return xm_program_exec_graph(xm_gpu_compiled_of(c)->program, out, err);
}

static enum xm_status
compiled_export(struct xm_compiled *c, const struct xm_export *to, struct xm_error *err)
{
    struct xm_program *p = xm_gpu_compiled_of(c)->program;
    struct xm_export by_mode = *to;
    by_mode.is_whole = p->config.cache_mode == XM_CACHE_SPEED;
    return xm_blob_write(p, &by_mode, err);
}

/* Sets *out to the context in which the model was compiled, or else to the device's default
 * context. */
static enum xm_status
compiled_get_context(struct xm_compiled *base, struct xm_context **out,
                     struct xm_error *err)
{
    const struct xm_gpu_compiled *c = xm_gpu_compiled_of(base);
    const struct xm_gpu_place place = {c->plugin, c->index, c->device};
    if (!c->has_contexts)
        return xm_fail(err, XM_UNSUPPORTED, "device %s has no remote contexts",
                       c->plugin);
    if (!c->context)
        return xm_gpu_context_of(&place, c->program->engine, out, err);
    *out = c->context;
    xm_context_ref(*out);
    return XM_OK;
}

static const struct xm_compiled_ops compiled_ops = {
    .create_request = xm_gpu_create_request,
    .create_sequence = xm_gpu_create_sequence,
    .create_batch = xm_gpu_create_batch,
    .get_property = compiled_get_property,
    .export_model = compiled_export,
    .print = compiled_print,
    .expect = compiled_expect,
    .has_room = compiled_has_room,
    .stats = compiled_stats,
    .expert_cache = compiled_expert_cache,
    .read_rate = compiled_read_rate,
    .multiply_rate = compiled_multiply_rate,
    .steps = compiled_steps,
    .exec_graph = compiled_exec_graph,
    .get_context = compiled_get_context,
    .destroy = compiled_destroy,
};

void
xm_gpu_compiled_wrap(struct xm_gpu_compiled *c, struct xm_program *p)
{
    c->base = (struct xm_compiled){.ops = &compiled_ops,
                                   .refs = 1,
                                   .ports = p->ports,
                                   .reports = p->reports,
                                   .n_reports = p->n_reports,
                                   .rules = p->rules_text,
                                   .notes = p->notes_text,
                                   .n_rounded = p->n_rounded};
    c->program = p;
}
