/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugins GPU and CPU: programs on OpenCL devices. GPU stands for all of them, best first; CPU
 * for those that are processors.
 */
#include <pthread.h>
#include <string.h>

#include "plugin/by_shape.h"
#include "plugin/gpu/blob.h"
#include "plugin/gpu/compile.h"
#include "plugin/gpu/gpu_plugin.h"
#include "plugin/gpu/gpu_properties.h"
#include "plugin/gpu/model_cache.h"
#include "primitives/variant.h"
#include "runtime/util/log.h"

struct gpu_plugin {
    struct xm_plugin base;
    struct xm_plugin_ops ops; /* with the plugin's name; CPU has no context functions */
    pthread_mutex_t lock;     /* guards config and cipher */
    struct xm_config config;  /* options that set_property stored */
    struct xm_cache_cipher cipher; /* also stored by set_property */
    struct xm_open_engines engines;
    const struct xm_device_info *infos; /* of all OpenCL devices */
    uint32_t *devices; /* [n] owned; the plugin's devices: indices of infos */
    uint32_t n;
};

static struct gpu_plugin *
as_gpu(struct xm_plugin *p)
{
    return (struct gpu_plugin *)p;
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
    enum xm_status s = strcmp(key, XM_CACHE_CIPHER_KEY) == 0
                           ? xm_cache_cipher_find(value, &p->cipher, err)
                           : xm_gpu_set_option(&p->config, p->ops.name, key, value, err);
    pthread_mutex_unlock(&p->lock);
    return s;
}

/* Copies the plugin's stored options to *out, which the caller frees with xm_free, and the cipher
 * to *cipher; then sets `properties` in these copies. */
static enum xm_status
settings_for(struct gpu_plugin *p, const struct xm_property *properties,
             uint32_t n_properties, struct xm_config **out,
             struct xm_cache_cipher *cipher, struct xm_error *err)
{
    struct xm_config *config = xm_malloc(sizeof(*config));
    if (!config)
        return xm_no_memory(err, "a config");
    pthread_mutex_lock(&p->lock);
    *config = p->config;
    *cipher = p->cipher;
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < n_properties; i++) {
        const struct xm_property *at = &properties[i];
        enum xm_status s =
            strcmp(at->key, XM_CACHE_CIPHER_KEY) == 0
                ? xm_cache_cipher_find(at->value, cipher, err)
                : xm_gpu_set_option(config, p->ops.name, at->key, at->value, err);
        if (s != XM_OK) {
            xm_free(config);
            return s;
        }
    }
    *out = config;
    return XM_OK;
}

/* Replaces index 0, which the plain name "GPU" gives, by the option DEVICE_ID. Refuses an index
 * that no device has. */
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

/* Finds the engine for which c is compiled: in its context, or the plugin's own. Sets c->index and
 * c->device. */
static enum xm_status
find_engine(struct gpu_plugin *p, struct xm_gpu_compiled *c, struct xm_config *config,
            struct xm_engine **out, struct xm_error *err)
{
    if (!c->context)
        XM_TRY(choose_device(p, config, &c->index, err));
    c->device = p->devices[c->index];
    return c->context ? xm_gpu_context_engine(c->context, &p->engines, config, out, err)
                      : xm_open_engines_get(&p->engines, c->device, config, out, err);
}

/* ---- importing compiled models ---- */

/* Makes a program of a blob. While it is made, the engine takes kernels from the blob instead of
 * building them. */
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
    c->device = p->devices[c->index];
    c->model_name = xm_strdup(blob->graph->name);
    if (!c->model_name)
        return xm_no_memory(err, "a compiled model");
    XM_TRY(xm_blob_config(blob, config, err));
    XM_TRY(find_engine(p, c, config, &engine, err));
    enum xm_status s = import_program(engine, config, blob, &program, err);
    xm_engine_unref(engine); /* the program holds it */
    if (s == XM_OK)
        xm_gpu_compiled_wrap(c, program);
    return s;
}

/* Fills c from the cache's entry at `path`. Returns false, and logs why, if there is no entry that
 * can be used. */
static bool
take_cached(struct gpu_plugin *p, struct xm_gpu_compiled *c, const char *path,
            const struct xm_cache_cipher *cipher, const struct xm_config *config)
{
    struct xm_import from;
    struct xm_error why = {0};
    struct xm_blob blob = {0};
    struct xm_config *own = xm_malloc(sizeof(*own)); /* a copy for the blob's options */
    if (!own)
        return false;
    *own = *config;
    enum xm_status s = xm_model_cache_open(path, cipher, &from, &why);
    if (s == XM_OK) {
        s = xm_blob_read(&from, plugin_info(&p->base, c->index), &blob, &why);
        if (s == XM_OK)
            s = import_blob(p, c, &blob, own, &why);
        xm_blob_free(&blob);
        xm_import_close(&from);
    }
    xm_free(own);
    if (s != XM_OK && s != XM_NOT_FOUND)
        xm_log(XM_LOG_INFO, "the cached compiled model %s is not used: %s", path,
               why.text);
    return s == XM_OK;
}

/* ---- compiling ---- */

/* Compiles `g`, which it owns from now on, also on failure, and fills c with the program. */
static enum xm_status
compile_graph(struct xm_gpu_compiled *c, struct xm_engine *engine,
              const struct xm_config *config, struct xm_graph *g,
              const struct xm_compile_options *options, struct xm_error *err)
{
    struct xm_program *program = NULL;
    xm_free(c->model_name); /* a cache entry that could not be used may have set it */
    c->model_name = xm_strdup(g->name ? g->name : "");
    enum xm_status s = xm_program_create(engine, config, g, options, &program, err);
    if (s == XM_OK)
        xm_gpu_compiled_wrap(c, program);
    if (s == XM_OK && !c->model_name)
        s = xm_no_memory(err, "a compiled model");
    return s;
}

/* ---- a program for each shape ---- */

/* What the programs for all shapes have in common. It does not refer to the plugin, which may be
 * destroyed before a program is compiled. */
struct shape_target {
    struct xm_engine *engine; /* referenced */
    struct xm_config *config;
    struct xm_gpu_compiled like; /* the programs' device and context, referenced */
};

static enum xm_status
compile_shape(void *ctx, struct xm_graph *g, struct xm_compiled **out,
              struct xm_error *err)
{
    const struct shape_target *t = ctx;
    struct xm_gpu_compiled *c = xm_malloc(sizeof(*c));
    if (!c) {
        xm_graph_destroy(g);
        return xm_no_memory(err, "a compiled model");
    }
    *c = t->like;
    if (c->context)
        xm_context_ref(c->context);
    enum xm_status s = compile_graph(c, t->engine, t->config, g, NULL, err);
    if (s == XM_OK)
        *out = &c->base;
    else
        xm_gpu_compiled_free(c);
    return s;
}

static void
free_shape_target(void *ctx)
{
    struct shape_target *t = ctx;
    xm_engine_unref(t->engine);
    xm_context_unref(t->like.context);
    xm_free(t->config);
    xm_free(t);
}

static enum xm_status
compile_by_shape(const struct xm_gpu_compiled *like, struct xm_engine *engine,
                 const struct xm_config *config, struct xm_kept_graph *kept,
                 struct xm_compiled **out, struct xm_error *err)
{
    struct shape_target *t = xm_calloc(1, sizeof(*t));
    struct xm_config *copy = xm_malloc(sizeof(*copy));
    if (!t || !copy) {
        xm_free(t);
        xm_free(copy);
        return xm_no_memory(err, "a compiled model");
    }
    *copy = *config;
    *t = (struct shape_target){.engine = engine,
                               .config = copy,
                               .like = {.plugin = like->plugin,
                                        .has_contexts = like->has_contexts,
                                        .index = like->index,
                                        .n_devices = like->n_devices,
                                        .device = like->device,
                                        .context = like->context}};
    xm_engine_ref(engine);
    if (like->context)
        xm_context_ref(like->context);
    const struct xm_shape_compiler compiler = {compile_shape, free_shape_target, t};
    return xm_by_shape_create(kept, compiler, out, err);
}

/* Compiles `g`, which it owns from now on, also on failure. *out is &c->base; or, if sizes of the
 * graph cannot be planned, a model that compiles a program for each shape. */
static enum xm_status
compile_uncached(struct xm_gpu_compiled *c, struct xm_engine *engine,
                 const struct xm_config *config, struct xm_graph *g,
                 const struct xm_compile_options *options, struct xm_compiled **out,
                 struct xm_error *err)
{
    struct xm_kept_graph *kept = NULL;
    struct xm_error why = {0};
    if (options && options->for_api && xm_by_shape_is_for(g))
        XM_TRY(xm_graph_keep(&g, &kept, err));
    enum xm_status s = compile_graph(c, engine, config, g, options, &why);
    if (s == XM_OK)
        *out = &c->base;
    else if (s == XM_UNPLANNED && kept)
        s = compile_by_shape(c, engine, config, kept, out, err);
    else
        xm_fail(err, s, "%s", why.text);
    xm_mapping_unref(kept ? &kept->base : NULL);
    return s;
}

/* Compiles `g`, which it owns from now on, also on failure, or takes it from the cache. Models that
 * the command line program compiles are not cached: it has a command that exports them. */
static enum xm_status
compile(struct gpu_plugin *p, struct xm_gpu_compiled *c, struct xm_config *config,
        const struct xm_cache_cipher *cipher, struct xm_graph *g,
        const struct xm_compile_options *options, struct xm_compiled **out,
        struct xm_error *err)
{
    struct xm_engine *engine = NULL;
    enum xm_status s = find_engine(p, c, config, &engine, err);
    char *path = s == XM_OK && options && options->for_api
                     ? xm_model_cache_path(g, config, options, xm_engine_info(engine))
                     : NULL;
    if (s == XM_OK && path && take_cached(p, c, path, cipher, config)) {
        *out = &c->base;
        xm_graph_destroy(g);
    } else if (s == XM_OK) {
        s = compile_uncached(c, engine, config, g, options, out, err);
        if (c->program && path)
            xm_model_cache_store(path, cipher, c->program);
    } else {
        xm_graph_destroy(g);
    }
    xm_engine_unref(engine); /* the program holds it */
    xm_free(path);
    return s;
}

/* What a model is compiled for: a device of the plugin, or a context on it. */
struct target {
    struct gpu_plugin *plugin;
    uint32_t index;
    struct xm_context *context; /* NULL: the device's default context */
};

/* Compiles `g`, which it owns from now on, also on failure, with the plugin's options and
 * `properties`. */
static enum xm_status
compile_for(struct target t, struct xm_graph *g, const struct xm_property *properties,
            uint32_t n_properties, const struct xm_compile_options *options,
            struct xm_compiled **out, struct xm_error *err)
{
    struct gpu_plugin *p = t.plugin;
    struct xm_config *config = NULL;
    struct xm_cache_cipher cipher;
    enum xm_status s = settings_for(p, properties, n_properties, &config, &cipher, err);
    struct xm_gpu_compiled *c = xm_calloc(1, sizeof(*c));
    if (s == XM_OK && !c)
        s = xm_no_memory(err, "a compiled model");
    if (s == XM_OK) {
        c->plugin = p->ops.name;
        c->has_contexts = p->ops.create_context != NULL;
        c->index = t.index;
        c->n_devices = p->n;
        c->context = t.context;
        if (t.context)
            xm_context_ref(t.context);
        s = compile(p, c, config, &cipher, g, options, out, err);
    } else {
        xm_graph_destroy(g);
    }
    xm_free(config);
    if (s != XM_OK || *out != &c->base)
        xm_gpu_compiled_free(c);
    return s;
}

static enum xm_status
plugin_compile(struct xm_plugin *base, uint32_t index, struct xm_graph *g,
               const struct xm_property *properties, uint32_t n_properties,
               const struct xm_compile_options *options, struct xm_compiled **out,
               struct xm_error *err)
{
    const struct target t = {as_gpu(base), index, NULL};
    return compile_for(t, g, properties, n_properties, options, out, err);
}

static enum xm_status
plugin_compile_in(struct xm_plugin *base, struct xm_context *context, struct xm_graph *g,
                  const struct xm_property *properties, uint32_t n_properties,
                  struct xm_compiled **out, struct xm_error *err)
{
    static const struct xm_compile_options options = {.for_api = true};
    struct target t = {as_gpu(base), 0, context};
    enum xm_status s = xm_gpu_context_device(context, base->ops->name, &t.index, err);
    if (s == XM_OK)
        return compile_for(t, g, properties, n_properties, &options, out, err);
    xm_graph_destroy(g);
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
    struct xm_import where = *from;
    struct xm_cache_cipher unused;
    XM_TRY(settings_for(p, properties, n_properties, &config, &unused, err));
    if (config->weights_path[0])
        where.weights = config->weights_path;
    struct xm_gpu_compiled *c = xm_calloc(1, sizeof(*c));
    enum xm_status s = c ? XM_OK : xm_no_memory(err, "a compiled model");
    if (s == XM_OK) {
        c->plugin = p->ops.name;
        c->has_contexts = p->ops.create_context != NULL;
        c->index = index;
        c->n_devices = p->n;
        s = choose_device(p, config, &c->index, err);
    }
    if (s == XM_OK)
        s = xm_blob_read(&where, plugin_info(base, c->index), &blob, err);
    if (s == XM_OK)
        s = import_blob(p, c, &blob, config, err);
    xm_blob_free(&blob);
    xm_free(config);
    if (s == XM_OK)
        *out = &c->base;
    else
        xm_gpu_compiled_free(c);
    return s;
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
        supported(n->name, ctx); /* all nodes: those without kernels run on the host */
    return XM_OK;
}

/* Finds the device to which the application's OpenCL handles belong. Refuses another device than
 * out->index, unless that is 0. */
static enum xm_status
find_place(const struct gpu_plugin *p, struct xm_shared_cl *share, uint32_t n,
           struct xm_gpu_place *out, struct xm_error *err)
{
    const uint32_t asked = out->index;
    size_t device = 0;
    uint32_t index = 0;
    XM_TRY(xm_engine_find_shared(share, n, &device, err));
    while (index < p->n && p->devices[index] != device)
        index++;
    if (index == p->n || (asked && asked != index))
        return xm_fail(err, XM_INVALID, "the OpenCL context belongs to %s, not to %s.%u",
                       p->infos[device].name, p->ops.name, asked);
    *out = (struct xm_gpu_place){p->ops.name, index, (uint32_t)device};
    return XM_OK;
}

static enum xm_status
own_context(struct gpu_plugin *p, const struct xm_gpu_place *place,
            const struct xm_config *config, struct xm_context **out, struct xm_error *err)
{
    struct xm_engine *engine = NULL;
    struct xm_gpu_place chosen = *place;
    XM_TRY(choose_device(p, config, &chosen.index, err));
    chosen.device = p->devices[chosen.index];
    XM_TRY(xm_open_engines_get(&p->engines, chosen.device, config, &engine, err));
    enum xm_status s = xm_gpu_context_of(&chosen, engine, out, err);
    xm_engine_unref(engine); /* the context holds it */
    return s;
}

static enum xm_status
plugin_create_context(struct xm_plugin *base, uint32_t index,
                      const struct xm_context_wish *wish, struct xm_context **out,
                      struct xm_error *err)
{
    struct gpu_plugin *p = as_gpu(base);
    struct xm_config *config = NULL;
    struct xm_cache_cipher unused;
    struct xm_shared_cl share = {wish->cl_context, wish->cl_queue};
    struct xm_gpu_place place = {p->ops.name, index, p->devices[index]};
    if (share.context || share.queue)
        XM_TRY(find_place(p, &share, wish->device, &place, err));
    XM_TRY(settings_for(p, NULL, 0, &config, &unused, err));
    enum xm_status s = share.context
                           ? xm_gpu_context_share(&place, &share, config, out, err)
                           : own_context(p, &place, config, out, err);
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
    .compile_in = plugin_compile_in,
    .destroy = plugin_destroy,
};

/* Lists the plugin's devices: all OpenCL devices, or only processors. */
static enum xm_status
list_devices(struct gpu_plugin *p, bool only_cpus, struct xm_error *err)
{
    size_t n = 0;
    XM_TRY(xm_engine_list(&p->infos, &n, err));
    p->devices = xm_calloc(n + 1, sizeof(*p->devices));
    if (!p->devices)
        return xm_no_memory(err, "a list of devices");
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
        return xm_no_memory(err, "the %s plugin", name);
    enum xm_status s = list_devices(p, only_cpus, err);
    if (s != XM_OK) {
        xm_free(p);
        return s;
    }
    p->ops = plugin_ops;
    p->ops.name = name;
    if (only_cpus) { /* OpenVINO's CPU has no remote contexts */
        p->ops.create_context = NULL;
        p->ops.compile_in = NULL;
    }
    p->base.ops = &p->ops;
    pthread_mutex_init(&p->lock, NULL);
    xm_open_engines_init(&p->engines, xm_engine_create_in, NULL);
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
