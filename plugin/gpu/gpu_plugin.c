/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugins GPU and CPU: programs on OpenCL devices. GPU stands for all of them, best first; CPU
 * for those that are processors.
 */
#include <pthread.h>

#include "plugin/gpu/blob.h"
#include "plugin/gpu/expert_caches.h"
#include "plugin/gpu/gpu_plugin.h"
#include "plugin/gpu/gpu_properties.h"
#include "primitives/variant.h"
#include "runtime/multiply_rate.h"
#include "runtime/read_rate.h"

struct gpu_plugin {
    struct xm_plugin base;
    struct xm_plugin_ops ops; /* with the plugin's name */
    pthread_mutex_t lock;     /* config */
    struct xm_config config;  /* what set_property stored */
    struct xm_open_engines engines;
    const struct xm_device_info *infos; /* of all OpenCL devices              */
    uint32_t *devices;                  /* owned; numbers of the plugin's own */
    uint32_t n;
};

static struct gpu_plugin *
as_gpu(struct xm_plugin *p)
{
    return (struct gpu_plugin *)p;
}

/* ---- compiled models ---- */

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
                                           .index = c->index};
    return xm_gpu_property(subject, key, out, err);
}

static void
compiled_print(struct xm_compiled *c, struct xm_strbuf *out)
{
    xm_program_print(xm_gpu_compiled_of(c)->program, out);
}

static void
compiled_destroy(struct xm_compiled *base)
{
    struct xm_gpu_compiled *c = (struct xm_gpu_compiled *)base;
    xm_program_unref(c->program);
    xm_free(c->model_name);
    xm_free(c);
}

static void
compiled_expect(struct xm_compiled *c, const uint64_t *positions, size_t n)
{
    const struct xm_program *p = xm_gpu_compiled_of(c)->program;
    if (p->kv_pool)
        xm_kv_pool_expect_each(p->kv_pool, positions, n);
}

static void
compiled_stats(struct xm_compiled *c, struct xm_compiled_stats *out)
{
    const struct xm_program *p = xm_gpu_compiled_of(c)->program;
    xm_engine_memory_stats(p->engine, &out->memory);
    xm_engine_build_stats(p->engine, &out->builds);
    out->weight_bytes = p->weight_bytes;
    out->host_weight_bytes = p->host_weight_bytes;
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
    struct xm_buffer *dense[MOST];
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_weights && n < MOST; i++) {
        if (p->weights[i]->host.experts == 1)
            dense[n++] = p->weights[i]->data;
    }
    return xm_read_rate(p->engine, dense, n, seconds, out, err);
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
compiled_export(struct xm_compiled *c, const struct xm_export *to, struct xm_error *err)
{
    return xm_blob_write(xm_gpu_compiled_of(c)->program, to, err);
}

static const struct xm_compiled_ops compiled_ops = {
    .create_request = xm_gpu_create_request,
    .create_sequence = xm_gpu_create_sequence,
    .create_batch = xm_gpu_create_batch,
    .get_property = compiled_get_property,
    .export_model = compiled_export,
    .print = compiled_print,
    .expect = compiled_expect,
    .stats = compiled_stats,
    .expert_cache = compiled_expert_cache,
    .read_rate = compiled_read_rate,
    .multiply_rate = compiled_multiply_rate,
    .steps = compiled_steps,
    .destroy = compiled_destroy,
};

static void
wrap_program(struct xm_gpu_compiled *c, struct xm_program *p)
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

/* ---- the plugin ---- */

static uint32_t
plugin_count(struct xm_plugin *p)
{
    return as_gpu(p)->n;
}

static const struct xm_device_info *
plugin_info(struct xm_plugin *p, uint32_t index)
{
    return &as_gpu(p)->infos[as_gpu(p)->devices[index]];
}

static enum xm_status
plugin_get_property(struct xm_plugin *base, uint32_t index, const char *key,
                    struct xm_strbuf *out, struct xm_error *err)
{
    struct gpu_plugin *p = as_gpu(base);
    if (index >= p->n)
        return xm_fail(err, XM_NOT_FOUND, "there is no device %s.%u", p->ops.name, index);
    const struct xm_gpu_subject subject = {.device = plugin_info(base, index),
                                           .config = &p->config,
                                           .engines = &p->engines,
                                           .engine = p->devices[index],
                                           .plugin = p->ops.name,
                                           .index = index,
                                           .n_devices = p->n};
    pthread_mutex_lock(&p->lock);
    enum xm_status s = xm_gpu_property(subject, key, out, err);
    pthread_mutex_unlock(&p->lock);
    return s;
}

static enum xm_status
plugin_set_property(struct xm_plugin *base, const char *key, const char *value,
                    struct xm_error *err)
{
    struct gpu_plugin *p = as_gpu(base);
    pthread_mutex_lock(&p->lock);
    enum xm_status s = xm_config_set(&p->config, key, value, err);
    pthread_mutex_unlock(&p->lock);
    return s;
}

/* A copy of the plugin's config with `properties` put over it, for xm_free. */
static enum xm_status
config_for(struct gpu_plugin *p, const struct xm_property *properties,
           uint32_t n_properties, struct xm_config **out, struct xm_error *err)
{
    struct xm_config *config = xm_malloc(sizeof(*config));
    if (!config)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a config");
    pthread_mutex_lock(&p->lock);
    *config = p->config;
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < n_properties; i++) {
        enum xm_status s =
            xm_config_set(config, properties[i].key, properties[i].value, err);
        if (s != XM_OK) {
            xm_free(config);
            return s;
        }
    }
    *out = config;
    return XM_OK;
}

/* DEVICE_ID says which device the plain name means. */
static enum xm_status
choose_device(const struct gpu_plugin *p, const struct xm_config *config, uint32_t *index,
              struct xm_error *err)
{
    if (*index == 0)
        *index = config->device_id;
    return *index < p->n ? XM_OK
                         : xm_fail(err, XM_NOT_FOUND,
                                   "DEVICE_ID is %u: there are %u devices", *index, p->n);
}

/* Takes `g` over, also on failure. */
static enum xm_status
compile(struct gpu_plugin *p, struct xm_gpu_compiled *c, const struct xm_config *config,
        struct xm_graph *g, const struct xm_compile_options *options,
        struct xm_error *err)
{
    struct xm_engine *engine = NULL;
    struct xm_program *program = NULL;
    enum xm_status s = choose_device(p, config, &c->index, err);
    if (s == XM_OK)
        s = xm_open_engines_get(&p->engines, p->devices[c->index], config, &engine, err);
    if (s != XM_OK) {
        xm_graph_destroy(g);
        return s;
    }
    s = xm_program_create(engine, config, g, options, &program, err);
    xm_engine_unref(engine); /* the program holds it */
    if (s == XM_OK)
        wrap_program(c, program);
    return s;
}

static enum xm_status
plugin_compile(struct xm_plugin *base, uint32_t index, struct xm_graph *g,
               const struct xm_property *properties, uint32_t n_properties,
               const struct xm_compile_options *options, struct xm_compiled **out,
               struct xm_error *err)
{
    struct gpu_plugin *p = as_gpu(base);
    struct xm_config *config = NULL;
    enum xm_status s = config_for(p, properties, n_properties, &config, err);
    struct xm_gpu_compiled *c = xm_calloc(1, sizeof(*c));
    char *model_name = xm_strdup(g->name ? g->name : "");
    if (s == XM_OK && !(c && model_name))
        s = xm_fail(err, XM_NO_MEMORY, "out of memory for a compiled model");
    if (s == XM_OK) {
        c->plugin = p->ops.name;
        c->index = index;
        s = compile(p, c, config, g, options, err);
    } else {
        xm_graph_destroy(g);
    }
    xm_free(config);
    if (s != XM_OK) {
        xm_free(model_name);
        xm_free(c);
        return s;
    }
    c->model_name = model_name;
    *out = &c->base;
    return XM_OK;
}

/* Kernels are taken from the blob while the program is made. */
static enum xm_status
import_program(struct xm_engine *engine, const struct xm_config *config,
               struct xm_blob *blob, struct xm_program **out, struct xm_error *err)
{
    const struct xm_rewritten rewritten = {blob->graph, blob->reports, blob->n_reports,
                                           blob->notes};
    struct xm_kernel_offer offer = {.find = xm_blob_kernel, .ctx = blob};
    blob->graph = NULL; /* the program's */
    xm_engine_offer_kernels(engine, &offer);
    enum xm_status s = xm_program_import(engine, config, &rewritten, out, err);
    xm_engine_withdraw_kernels(engine, &offer);
    return s;
}

static enum xm_status
import_blob(struct gpu_plugin *p, struct xm_gpu_compiled *c, struct xm_blob *blob,
            struct xm_config *config, struct xm_error *err)
{
    struct xm_engine *engine = NULL;
    struct xm_program *program = NULL;
    c->model_name = xm_strdup(blob->graph->name);
    if (!c->model_name)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a compiled model");
    XM_TRY(xm_blob_config(blob, config, err));
    XM_TRY(xm_open_engines_get(&p->engines, p->devices[c->index], config, &engine, err));
    enum xm_status s = import_program(engine, config, blob, &program, err);
    xm_engine_unref(engine); /* the program holds it */
    if (s == XM_OK)
        wrap_program(c, program);
    return s;
}

static enum xm_status
plugin_import(struct xm_plugin *base, uint32_t index, const struct xm_import *from,
              const struct xm_property *properties, uint32_t n_properties,
              struct xm_compiled **out, struct xm_error *err)
{
    struct gpu_plugin *p = as_gpu(base);
    struct xm_config *config = NULL;
    struct xm_blob blob = {0};
    XM_TRY(config_for(p, properties, n_properties, &config, err));
    struct xm_gpu_compiled *c = xm_calloc(1, sizeof(*c));
    enum xm_status s =
        c ? XM_OK : xm_fail(err, XM_NO_MEMORY, "out of memory for a compiled model");
    if (s == XM_OK) {
        c->plugin = p->ops.name;
        c->index = index;
        s = choose_device(p, config, &c->index, err);
    }
    if (s == XM_OK)
        s = xm_blob_read(from, plugin_info(base, c->index), &blob, err);
    if (s == XM_OK)
        s = import_blob(p, c, &blob, config, err);
    xm_blob_free(&blob);
    xm_free(config);
    if (s != XM_OK) {
        xm_free(c ? c->model_name : NULL);
        xm_free(c);
        return s;
    }
    *out = &c->base;
    return XM_OK;
}

static enum xm_status
plugin_query_model(struct xm_plugin *base, uint32_t index, struct xm_graph *g,
                   void (*supported)(const char *node, void *ctx), void *ctx,
                   struct xm_error *err)
{
    (void)base;
    (void)index;
    (void)err;
    xm_for_each_node(n, g)
        supported(n->name, ctx); /* what has no kernel runs on the host */
    return XM_OK;
}

static enum xm_status
plugin_create_context(struct xm_plugin *base, uint32_t index, struct xm_engine **out,
                      struct xm_error *err)
{
    struct gpu_plugin *p = as_gpu(base);
    struct xm_config *config = NULL;
    XM_TRY(config_for(p, NULL, 0, &config, err));
    enum xm_status s =
        xm_open_engines_get(&p->engines, p->devices[index], config, out, err);
    xm_free(config);
    return s;
}

static void
plugin_destroy(struct xm_plugin *base)
{
    struct gpu_plugin *p = as_gpu(base);
    xm_open_engines_free(&p->engines);
    pthread_mutex_destroy(&p->lock);
    xm_free(p->devices);
    xm_free(p);
}

static const struct xm_plugin_ops plugin_ops = {
    .description = "xemoe OpenCL device plugin",
    .count = plugin_count,
    .info = plugin_info,
    .get_property = plugin_get_property,
    .set_property = plugin_set_property,
    .compile = plugin_compile,
    .import_model = plugin_import,
    .query_model = plugin_query_model,
    .create_context = plugin_create_context,
    .destroy = plugin_destroy,
};

/* The devices that a name stands for: all, or processors only. */
static enum xm_status
list_devices(struct gpu_plugin *p, bool only_cpus, struct xm_error *err)
{
    size_t n = 0;
    XM_TRY(xm_engine_list(&p->infos, &n, err));
    p->devices = xm_calloc(n + 1, sizeof(*p->devices));
    if (!p->devices)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a list of devices");
    for (uint32_t i = 0; i < n; i++) {
        if (!only_cpus || p->infos[i].kind == XM_DEVICE_CPU)
            p->devices[p->n++] = i;
    }
    return XM_OK;
}

static enum xm_status
create(const char *name, bool only_cpus, struct xm_plugin **out, struct xm_error *err)
{
    struct gpu_plugin *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the %s plugin", name);
    enum xm_status s = list_devices(p, only_cpus, err);
    if (s != XM_OK) {
        xm_free(p);
        return s;
    }
    p->ops = plugin_ops;
    p->ops.name = name;
    p->base.ops = &p->ops;
    pthread_mutex_init(&p->lock, NULL);
    xm_open_engines_init(&p->engines, xm_engine_create);
    xm_config_init(&p->config);
    *out = &p->base;
    return XM_OK;
}

enum xm_status
xm_gpu_plugin_create(struct xm_plugin **out, struct xm_error *err)
{
    return create("GPU", false, out, err);
}

enum xm_status
xm_cpu_plugin_create(struct xm_plugin **out, struct xm_error *err)
{
    return create("CPU", true, out, err);
}

enum xm_status
xm_core_check_force(struct xm_error *err)
{
    return xm_variant_check_force(err);
}
