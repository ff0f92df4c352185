/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin GPU: programs on OpenCL devices. Engines are opened on first use and shared.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "plugin/plugin.h"
#include "runtime/util/log.h"

enum { MAX_DEVICES = 32 };

struct gpu_plugin {
    struct xm_plugin base;
    pthread_mutex_t lock;
    struct xm_config config; /* what set_property stored */
    struct xm_engine *engines[MAX_DEVICES];
    const struct xm_device_info *infos;
    uint32_t n;
};

struct gpu_compiled {
    struct xm_compiled base;
};

struct gpu_infer {
    struct xm_infer base;
};

static struct gpu_plugin *
as_gpu(struct xm_plugin *p)
{
    return (struct gpu_plugin *)p;
}

/* ---- requests ---- */

static enum xm_status
infer_set_input(struct xm_infer *r, uint32_t input, const struct xm_host_tensor *t,
                struct xm_error *err)
{
    return xm_request_set_input(r->request, input, t, err);
}

static enum xm_status
infer_run(struct xm_infer *r, struct xm_error *err)
{
    return xm_request_infer(r->request, err);
}

static enum xm_status
infer_output(struct xm_infer *r, uint32_t output, struct xm_host_tensor *t,
             struct xm_error *err)
{
    return xm_request_output(r->request, output, t, err);
}

static void
infer_reset(struct xm_infer *r)
{
    xm_request_reset(r->request);
}

static void
infer_truncate(struct xm_infer *r, uint64_t past)
{
    xm_request_truncate(r->request, past);
}

static uint64_t
infer_past(const struct xm_infer *r)
{
    return xm_request_past(r->request);
}

static void
infer_cancel(struct xm_infer *r)
{
    xm_request_cancel(r->request);
}

static void
infer_destroy(struct xm_infer *r)
{
    xm_request_destroy(r->request);
    xm_free(r);
}

static const struct xm_infer_ops infer_ops = {
    .set_input = infer_set_input,
    .infer = infer_run,
    .output = infer_output,
    .reset = infer_reset,
    .truncate = infer_truncate,
    .past = infer_past,
    .cancel = infer_cancel,
    .destroy = infer_destroy,
};

/* ---- compiled models ---- */

static enum xm_status
compiled_create_request(struct xm_compiled *c, struct xm_infer **out,
                        struct xm_error *err)
{
    struct gpu_infer *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a request");
    enum xm_status s = xm_request_create(c->program, &r->base.request, err);
    if (s != XM_OK) {
        xm_free(r);
        return s;
    }
    r->base.ops = &infer_ops;
    *out = &r->base;
    return XM_OK;
}

static enum xm_status
compiled_get_property(struct xm_compiled *c, const char *key, struct xm_strbuf *out,
                      struct xm_error *err)
{
    if (strcmp(key, "EXECUTION_DEVICES") == 0) {
        xm_strbuf_add(out, "GPU");
        return XM_OK;
    }
    if (strcmp(key, "FULL_DEVICE_NAME") == 0) {
        xm_strbuf_add(out, xm_engine_info(c->program->engine)->name);
        return XM_OK;
    }
    if (strcmp(key, "OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 0) {
        xm_strbuf_add(out, "1");
        return XM_OK;
    }
    return xm_config_get(&c->program->config, key, out, err);
}

static void
compiled_print(struct xm_compiled *c, struct xm_strbuf *out)
{
    xm_program_print(c->program, out);
}

static void
compiled_destroy(struct xm_compiled *c)
{
    xm_program_unref(c->program);
    xm_free(c);
}

static const struct xm_compiled_ops compiled_ops = {
    .create_request = compiled_create_request,
    .get_property = compiled_get_property,
    .print = compiled_print,
    .destroy = compiled_destroy,
};

static enum xm_status
wrap_program(struct xm_program *p, struct xm_compiled **out, struct xm_error *err)
{
    struct gpu_compiled *c = xm_calloc(1, sizeof(*c));
    if (!c) {
        xm_program_unref(p);
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a compiled model");
    }
    c->base = (struct xm_compiled){.ops = &compiled_ops,
                                   .refs = 1,
                                   .inputs = p->inputs,
                                   .outputs = p->outputs,
                                   .n_inputs = p->n_inputs,
                                   .n_outputs = p->n_outputs,
                                   .reports = p->reports,
                                   .n_reports = p->n_reports,
                                   .program = p};
    *out = &c->base;
    return XM_OK;
}

/* ---- the plugin ---- */

static uint32_t
plugin_count(struct xm_plugin *p)
{
    return as_gpu(p)->n;
}

/* Opens the device once; later compiles share the engine. */
static enum xm_status
open_engine(struct gpu_plugin *p, uint32_t index, struct xm_engine **out,
            struct xm_error *err)
{
    enum xm_status s = XM_OK;
    pthread_mutex_lock(&p->lock);
    if (!p->engines[index])
        s = xm_engine_create(index, &p->config, &p->engines[index], err);
    *out = p->engines[index];
    pthread_mutex_unlock(&p->lock);
    return s;
}

/* Properties of the device itself, not of the config: name and how to print it. */
static void
print_name(const struct xm_device_info *d, struct xm_strbuf *out)
{
    xm_strbuf_add(out, d->name);
}

static void
print_type(const struct xm_device_info *d, struct xm_strbuf *out)
{
    xm_strbuf_add(out,
                  d->integrated || d->kind == XM_DEVICE_CPU ? "integrated" : "discrete");
}

static void
print_architecture(const struct xm_device_info *d, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "GPU: vendor=0x%x arch=v%u.%u.%u", d->vendor_id, d->ip_major,
                     d->ip_minor, d->ip_revision);
}

static void
print_memory(const struct xm_device_info *d, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%llu", (unsigned long long)d->global_bytes);
}

static void
print_units(const struct xm_device_info *d, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%u", d->compute_units);
}

static void
print_capabilities(const struct xm_device_info *d, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "FP32 BIN FP16 INT8");
    if (xm_device_has(d, XM_CAP_DPAS))
        xm_strbuf_add(out, " GPU_HW_MATMUL");
    if (xm_device_has(d, XM_CAP_USM_DEVICE))
        xm_strbuf_add(out, " GPU_USM_MEMORY");
}

static const struct {
    const char *key;
    void (*print)(const struct xm_device_info *d, struct xm_strbuf *out);
} device_properties[] = {
    {"FULL_DEVICE_NAME", print_name},
    {"DEVICE_TYPE", print_type},
    {"DEVICE_ARCHITECTURE", print_architecture},
    {"GPU_DEVICE_TOTAL_MEM_SIZE", print_memory},
    {"GPU_EXECUTION_UNITS_COUNT", print_units},
    {"OPTIMIZATION_CAPABILITIES", print_capabilities},
};

static void
print_supported(struct xm_strbuf *out)
{
    size_t n = 0;
    const struct xm_option_row *rows = xm_option_rows(&n);
    xm_strbuf_add(out, "SUPPORTED_PROPERTIES AVAILABLE_DEVICES");
    for (size_t i = 0; i < XM_ARRAY_LEN(device_properties); i++)
        xm_strbuf_printf(out, " %s", device_properties[i].key);
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, " %s", rows[i].name);
}

static enum xm_status
plugin_get_property(struct xm_plugin *base, uint32_t index, const char *key,
                    struct xm_strbuf *out, struct xm_error *err)
{
    struct gpu_plugin *p = as_gpu(base);
    if (strcmp(key, "SUPPORTED_PROPERTIES") == 0) {
        print_supported(out);
        return XM_OK;
    }
    if (strcmp(key, "AVAILABLE_DEVICES") == 0) {
        for (uint32_t i = 0; i < p->n; i++)
            xm_strbuf_printf(out, "%s%u", i ? " " : "", i);
        return XM_OK;
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(device_properties) && index < p->n; i++) {
        if (strcmp(key, device_properties[i].key) == 0) {
            device_properties[i].print(&p->infos[index], out);
            return XM_OK;
        }
    }
    pthread_mutex_lock(&p->lock);
    enum xm_status s = xm_config_get(&p->config, key, out, err);
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

static enum xm_status
plugin_compile(struct xm_plugin *base, uint32_t index, struct xm_graph *g,
               const struct xm_property *properties, uint32_t n_properties,
               const struct xm_compile_options *options, struct xm_compiled **out,
               struct xm_error *err)
{
    struct gpu_plugin *p = as_gpu(base);
    struct xm_engine *engine = NULL;
    struct xm_program *program = NULL;
    enum xm_status s = open_engine(p, index, &engine, err);
    struct xm_config *config = xm_malloc(sizeof(*config));
    if (s == XM_OK && !config)
        s = xm_fail(err, XM_NO_MEMORY, "out of memory for a config");
    if (s == XM_OK) {
        pthread_mutex_lock(&p->lock);
        *config = p->config;
        pthread_mutex_unlock(&p->lock);
    }
    for (uint32_t i = 0; i < n_properties && s == XM_OK; i++)
        s = xm_config_set(config, properties[i].key, properties[i].value, err);
    if (s == XM_OK)
        s = xm_program_create(engine, config, g, options, &program, err);
    else
        xm_graph_destroy(g);
    xm_free(config);
    return s == XM_OK ? wrap_program(program, out, err) : s;
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
    XM_TRY(open_engine(as_gpu(base), index, out, err));
    xm_engine_ref(*out);
    return XM_OK;
}

static void
plugin_destroy(struct xm_plugin *base)
{
    struct gpu_plugin *p = as_gpu(base);
    for (uint32_t i = 0; i < MAX_DEVICES; i++)
        xm_engine_unref(p->engines[i]);
    pthread_mutex_destroy(&p->lock);
    xm_free(p);
}

static const struct xm_plugin_ops plugin_ops = {
    .name = "GPU",
    .description = "xemoe OpenCL device plugin",
    .count = plugin_count,
    .get_property = plugin_get_property,
    .set_property = plugin_set_property,
    .compile = plugin_compile,
    .query_model = plugin_query_model,
    .create_context = plugin_create_context,
    .destroy = plugin_destroy,
};

enum xm_status
xm_gpu_plugin_create(struct xm_plugin **out, struct xm_error *err)
{
    size_t n = 0;
    struct gpu_plugin *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the GPU plugin");
    enum xm_status s = xm_engine_list(&p->infos, &n, err);
    if (s != XM_OK) {
        xm_free(p);
        return s;
    }
    p->base.ops = &plugin_ops;
    p->n = n < MAX_DEVICES ? (uint32_t)n : MAX_DEVICES;
    pthread_mutex_init(&p->lock, NULL);
    xm_config_init(&p->config);
    *out = &p->base;
    return XM_OK;
}
