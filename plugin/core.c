/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins by device name.
 */
#include <string.h>

#include "plugin/plugin.h"
#include "runtime/util/log.h"
#include "transformations/graph/graph.h"

enum { MAX_PLUGINS = 16 };

struct xm_core {
    struct xm_plugin *plugins[MAX_PLUGINS];
    uint32_t n;
};

/* ---- life ---- */

enum xm_status
xm_core_register(struct xm_core *c, struct xm_plugin *p, struct xm_error *err)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (strcmp(c->plugins[i]->ops->name, p->ops->name) == 0)
            return xm_fail(err, XM_INVALID,
                           "a plugin for device '%s' is registered already",
                           p->ops->name);
    }
    if (c->n == MAX_PLUGINS)
        return xm_fail(err, XM_UNSUPPORTED, "more than %d device plugins", MAX_PLUGINS);
    c->plugins[c->n++] = p;
    return XM_OK;
}

enum xm_status
xm_core_create(struct xm_core **out, struct xm_error *err)
{
    static enum xm_status (*const built_in[])(struct xm_plugin **, struct xm_error *) = {
        xm_gpu_plugin_create, xm_cpu_plugin_create, xm_reference_plugin_create};
    XM_TRY(xm_debug_check(err));
    struct xm_core *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the core");
    for (size_t i = 0; i < XM_ARRAY_LEN(built_in); i++) {
        struct xm_plugin *p = NULL;
        enum xm_status s = built_in[i](&p, err);
        if (s == XM_OK)
            s = xm_core_register(c, p, err);
        if (s != XM_OK) {
            xm_core_destroy(c);
            return s;
        }
    }
    *out = c;
    return XM_OK;
}

void
xm_core_destroy(struct xm_core *c)
{
    for (uint32_t i = 0; c && i < c->n; i++)
        c->plugins[i]->ops->destroy(c->plugins[i]);
    xm_free(c);
}

uint32_t
xm_core_plugins(const struct xm_core *c, struct xm_plugin *const **list)
{
    *list = c->plugins;
    return c->n;
}

/* ---- names ---- */

/* What OpenVINO spreads over several devices runs on one here. */
static bool
is_virtual(const char *device)
{
    static const char *const names[] = {"AUTO", "HETERO", "MULTI", "BATCH"};
    size_t n = strcspn(device, ":");
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        if (strlen(names[i]) == n && memcmp(names[i], device, n) == 0)
            return true;
    }
    return false;
}

/* "AUTO:CPU", "BATCH:CPU(4)": nothing but CPU is allowed. */
static bool
spreads_over_cpu(const char *device)
{
    const char *list = device + strcspn(device, ":");
    return strncmp(list, ":CPU", 4) == 0 && (list[4] == '\0' || list[4] == '(');
}

/* Names that mean another device; users' programs have them in their source. */
static const char *
resolve_alias(const char *device)
{
    if (!device)
        return "GPU";
    if (!is_virtual(device))
        return device;
    const char *name = spreads_over_cpu(device) ? "CPU" : "GPU";
    xm_log(XM_LOG_INFO, "device %s is taken as %s: the best OpenCL device%s", device,
           name, name[0] == 'C' ? " that is a processor" : "");
    return name;
}

static void
add_name(const char *name, void *ctx)
{
    struct xm_strbuf *list = ctx;
    xm_strbuf_printf(list, "%s%s", list->n ? ", " : "", name);
}

/* What is missing where a name that plugins have stands for no device. */
static const char *
hint_for(const char *device, const char *names)
{
    static const struct {
        const char *name, *hint;
    } hints[] = {
        {"GPU", "; no OpenCL driver is installed, or none has a device"},
        {"CPU", "; no OpenCL driver here runs on the processor: install PoCL "
                "(tools/setup does) or Intel's CPU runtime"},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(hints); i++) {
        if (strncmp(device, hints[i].name, 3) == 0 && !strstr(names, hints[i].name))
            return hints[i].hint;
    }
    return "";
}

static enum xm_status
fail_unknown(const struct xm_core *c, const char *device, struct xm_error *err)
{
    struct xm_strbuf names = {0};
    xm_core_devices(c, add_name, &names);
    xm_fail(err, XM_NOT_FOUND,
            "Device with \"%s\" name is not registered in the OpenVINO Runtime; "
            "available: %s%s",
            device, names.n ? xm_strbuf_text(&names) : "none",
            hint_for(device, xm_strbuf_text(&names)));
    xm_strbuf_free(&names);
    return XM_NOT_FOUND;
}

/* "GPU.1" -> length of "GPU" and 1; false when the part behind the dot is no number. */
static bool
split_name(const char *device, size_t *n, uint32_t *index)
{
    *n = strcspn(device, ".");
    *index = 0;
    if (device[*n] == '\0')
        return true;
    const char *p = device + *n + 1;
    for (; *p >= '0' && *p <= '9' && *index < 10000; p++)
        *index = 10 * *index + (uint32_t)(*p - '0');
    return *p == '\0' && p > device + *n + 1;
}

enum xm_status
xm_core_find(const struct xm_core *c, const char *device, struct xm_plugin **plugin,
             uint32_t *index, struct xm_error *err)
{
    const char *name = resolve_alias(device);
    size_t n;
    if (split_name(name, &n, index)) {
        for (uint32_t i = 0; i < c->n; i++) {
            struct xm_plugin *p = c->plugins[i];
            if (strlen(p->ops->name) == n && memcmp(p->ops->name, name, n) == 0 &&
                *index < p->ops->count(p)) {
                *plugin = p;
                return XM_OK;
            }
        }
    }
    return fail_unknown(c, name, err);
}

void
xm_core_devices(const struct xm_core *c, void (*each)(const char *name, void *ctx),
                void *ctx)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct xm_plugin *p = c->plugins[i];
        uint32_t count = p->ops->count(p);
        for (uint32_t d = 0; d < count; d++) {
            struct xm_strbuf name = {0};
            xm_strbuf_add(&name, p->ops->name);
            if (count > 1)
                xm_strbuf_printf(&name, ".%u", d);
            each(xm_strbuf_text(&name), ctx);
            xm_strbuf_free(&name);
        }
    }
}

/* ---- models ---- */

enum xm_status
xm_core_compile(const struct xm_core *c, struct xm_graph *g, const char *device,
                const struct xm_property *properties, uint32_t n_properties,
                const struct xm_compile_options *options, struct xm_compiled **out,
                struct xm_error *err)
{
    struct xm_plugin *p = NULL;
    uint32_t index = 0;
    enum xm_status s = xm_core_find(c, device, &p, &index, err);
    if (s != XM_OK) {
        xm_graph_destroy(g);
        return s;
    }
    return p->ops->compile(p, index, g, properties, n_properties, options, out, err);
}

enum xm_status
xm_core_import(const struct xm_core *c, const struct xm_import *from, const char *device,
               const struct xm_property *properties, uint32_t n_properties,
               struct xm_compiled **out, struct xm_error *err)
{
    struct xm_plugin *p = NULL;
    uint32_t index = 0;
    XM_TRY(xm_core_find(c, device, &p, &index, err));
    if (!p->ops->import_model)
        return xm_fail(err, XM_UNSUPPORTED, "device %s does not import compiled models",
                       p->ops->name);
    return p->ops->import_model(p, index, from, properties, n_properties, out, err);
}

/* ---- compiled models and requests ---- */

void
xm_compiled_ref(struct xm_compiled *c)
{
    xm_refs_add(&c->refs);
}

void
xm_compiled_unref(struct xm_compiled *c)
{
    if (c && xm_refs_drop(&c->refs) == 0)
        c->ops->destroy(c);
}

enum xm_status
xm_compiled_create_request(struct xm_compiled *c, struct xm_infer **out,
                           struct xm_error *err)
{
    XM_TRY(c->ops->create_request(c, out, err));
    (*out)->compiled = c;
    xm_compiled_ref(c);
    return XM_OK;
}

void
xm_infer_destroy(struct xm_infer *r)
{
    if (!r)
        return;
    struct xm_compiled *c = r->compiled;
    r->ops->destroy(r);
    xm_compiled_unref(c);
}

/* ---- sequences ---- */

static enum xm_status
no_sequences(struct xm_error *err)
{
    return xm_fail(err, XM_UNSUPPORTED, "this device has no sequences");
}

enum xm_status
xm_compiled_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                            struct xm_error *err)
{
    if (!c->ops->create_sequence)
        return no_sequences(err);
    XM_TRY(c->ops->create_sequence(c, out, err));
    (*out)->compiled = c;
    xm_compiled_ref(c);
    return XM_OK;
}

enum xm_status
xm_compiled_fork_sequence(struct xm_sequence *s, struct xm_sequence **out,
                          struct xm_error *err)
{
    XM_TRY(s->ops->fork(s, out, err));
    (*out)->compiled = s->compiled;
    xm_compiled_ref(s->compiled);
    return XM_OK;
}

void
xm_compiled_destroy_sequence(struct xm_sequence *s)
{
    if (!s)
        return;
    struct xm_compiled *c = s->compiled;
    s->ops->destroy(s);
    xm_compiled_unref(c);
}

enum xm_status
xm_compiled_create_batch(struct xm_compiled *c, struct xm_batch **out,
                         struct xm_error *err)
{
    if (!c->ops->create_batch)
        return no_sequences(err);
    XM_TRY(c->ops->create_batch(c, out, err));
    (*out)->compiled = (*out)->control->compiled = c;
    xm_compiled_ref(c);
    return XM_OK;
}

void
xm_compiled_destroy_batch(struct xm_batch *b)
{
    if (!b)
        return;
    struct xm_compiled *c = b->compiled;
    b->ops->destroy(b);
    xm_compiled_unref(c);
}
