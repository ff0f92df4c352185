/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the device that a name means, and compiles and imports models for it.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "plugin/core.h"
#include "plugin/device_names.h"
#include "plugin/mesh/mesh_names.h"
#include "runtime/collective_mpi.h"
#include "runtime/util/log.h"
#include "transformations/graph/graph.h"

/* ---- names ---- */

/* Splits "GPU.1" into the length of "GPU" and 1. Returns false if the part after the dot is not a
 * number. */
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

/* Finds a device by its exact name. XM_NOT_FOUND without a sentence: there is no such device. */
static enum xm_status
find_one(const struct xm_core *c, const char *name, struct xm_plugin **plugin,
         uint32_t *index, struct xm_error *err)
{
    struct xm_plugin *p = NULL;
    size_t n;
    if (!split_name(name, &n, index))
        return XM_NOT_FOUND;
    XM_TRY(xm_core_plugin(c, name, n, &p, err));
    if (*index >= p->ops->count(p))
        return XM_NOT_FOUND;
    *plugin = p;
    return XM_OK;
}

static uint32_t
count_devices(const struct xm_core *c, const char *plugin)
{
    struct xm_plugin *p = NULL;
    xm_core_plugin(c, plugin, strlen(plugin), &p, NULL);
    return p ? p->ops->count(p) : 0;
}

/* Returns GPU for CPU if no OpenCL driver runs on the processor, because many programs name CPU in
 * their source. */
static const char *
resolve_cpu(const struct xm_core *c, const char *device)
{
    static atomic_bool warned;
    bool is_cpu = strcmp(device, "CPU") == 0 || strcmp(device, "CPU.0") == 0;
    if (!is_cpu || count_devices(c, "CPU") || !count_devices(c, "GPU"))
        return device;
    if (!atomic_exchange(&warned, true))
        xm_log(XM_LOG_WARNING, "device CPU means GPU here: no installed OpenCL driver "
                               "runs on the processor");
    return "GPU";
}

/* Whether a list excludes the device: "-GPU". */
static bool
is_left_out(const char *list, const char *device)
{
    char name[XM_DEVICE_NAME];
    while (xm_device_list_next(&list, name)) {
        if (name[0] == '-' && strcmp(name + 1, device) == 0)
            return true;
    }
    return false;
}

/* Whether the device exists. If its plugin cannot be loaded, logs a warning and returns false. */
static bool
is_there(const struct xm_core *c, const char *device)
{
    struct xm_plugin *p;
    uint32_t index;
    const char *name = resolve_cpu(c, device);
    xm_core_warn_of_broken(c, name, strcspn(name, "."));
    return find_one(c, name, &p, &index, NULL) == XM_OK;
}

/* Chooses the device of a list that runs the model alone. `first`: the first of the list, even if
 * it does not exist. Else the first that exists, or, if none does, the first, so that the error
 * names it. An empty list means GPU, or CPU if the list excludes GPU. */
static void
choose(const struct xm_core *c, const char *list, bool first, char chosen[XM_DEVICE_NAME])
{
    char name[XM_DEVICE_NAME];
    const char *best = is_left_out(list, "GPU") ? "CPU" : "GPU";
    bool found = false, named = false;
    while (!found && xm_device_list_next(&list, name)) {
        if (name[0] == '-')
            continue;
        found = first || is_there(c, name);
        if (found || !named)
            memcpy(chosen, name, XM_DEVICE_NAME);
        named = true;
    }
    if (!named)
        snprintf(chosen, XM_DEVICE_NAME, "%s", best);
}

static void
warn_of_lack(const struct xm_core *c, const char *device, const char *chosen)
{
    uint32_t bit = 0;
    const char *lack = xm_device_lack(device, &bit);
    if (lack && xm_core_is_first(c, bit))
        xm_log(XM_LOG_WARNING, "device %s uses %s alone: %s", device, chosen, lack);
}

static void
warn_of_absent(const struct xm_core *c, const char *device, const char *list)
{
    char name[XM_DEVICE_NAME];
    struct xm_strbuf absent = {0};
    uint32_t bit = 0;
    if (!xm_device_needs_all(device, &bit))
        return;
    while (xm_device_list_next(&list, name)) {
        if (name[0] != '-' && !is_there(c, name))
            xm_strbuf_printf(&absent, "%s%s", absent.n ? ", " : "", name);
    }
    if (absent.n && xm_core_is_first(c, bit))
        xm_log(XM_LOG_WARNING, "device %s: there is no %s", device,
               xm_strbuf_text(&absent));
    xm_strbuf_free(&absent);
}

/* Returns the device that a name stands for. NULL: GPU. A list or a mesh: the one of its devices
 * that choose() picks. CPU: GPU, if there is a GPU and no OpenCL driver runs on the processor. Any
 * other name: itself. The result may point into `chosen`. */
static const char *
resolve_alias(const struct xm_core *c, const char *device, char chosen[XM_DEVICE_NAME])
{
    const char *list = !device                ? ""
                       : xm_mesh_list(device) ? xm_mesh_list(device)
                                              : xm_device_list(device);
    if (!list)
        return resolve_cpu(c, device);
    uint32_t bit;
    choose(c, list, device && xm_device_needs_all(device, &bit), chosen);
    if (device && is_there(c, chosen)) {
        if (!xm_mesh_list(device)) /* a mesh uses all its devices, not only this one */
            xm_log(XM_LOG_INFO, "device %s means %s here", device, chosen);
        warn_of_absent(c, device, list);
        warn_of_lack(c, device, chosen);
    }
    return resolve_cpu(c, chosen);
}

static void
add_name(const char *name, void *ctx)
{
    struct xm_strbuf *list = ctx;
    xm_strbuf_printf(list, "%s%s", list->n ? ", " : "", name);
}

/* Returns advice on what is missing if no device has the name, although a plugin could have it. */
static const char *
hint_for(const char *device, const char *names)
{
    static const struct {
        const char *name, *hint;
    } hints[] = {
        {"GPU", "; no OpenCL driver is installed, or none reports a "
                "device: " XM_DRIVERS_TO_INSTALL},
        {"CPU", "; no installed OpenCL driver runs on the processor: install PoCL "
                "(pocl-opencl-icd; tools/setup installs it) or Intel's CPU runtime"},
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

/* A device, and whether the name had an index ("GPU.1"). */
struct found {
    struct xm_plugin *plugin;
    uint32_t index;
    bool is_numbered;
};

static enum xm_status
find_device(const struct xm_core *c, const char *device, struct found *out,
            struct xm_error *err)
{
    char chosen[XM_DEVICE_NAME];
    struct xm_error why = {0};
    const char *name = resolve_alias(c, device, chosen);
    const enum xm_status s = find_one(c, name, &out->plugin, &out->index, &why);
    out->is_numbered = strchr(name, '.') != NULL;
    if (why.status != XM_OK)
        return xm_fail(err, s, "%s", why.text);
    return s == XM_OK ? XM_OK : fail_unknown(c, name, err);
}

enum xm_status
xm_core_find(const struct xm_core *c, const char *device, struct xm_plugin **plugin,
             uint32_t *index, struct xm_error *err)
{
    struct found found = {0};
    XM_TRY(find_device(c, device, &found, err));
    *plugin = found.plugin;
    *index = found.index;
    return XM_OK;
}

void
xm_core_devices(const struct xm_core *c, void (*each)(const char *name, void *ctx),
                void *ctx)
{
    struct xm_plugin *const *plugins;
    const uint32_t n = xm_core_plugins(c, &plugins);
    for (uint32_t i = 0; i < n; i++) {
        struct xm_plugin *p = plugins[i];
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

/* Finds the device that w->device names, and completes the wish's properties for it. */
static enum xm_status
find_wished(const struct xm_core *c, struct xm_device_wish *w, struct found *out,
            struct xm_error *err)
{
    XM_TRY(find_device(c, w->device, out, err));
    xm_device_wish_tell(w, out->plugin, out->is_numbered ? &out->index : NULL);
    return XM_OK;
}

/* Whether the property asks to split the model over the devices of HETERO, as in OpenVINO. */
static bool
has_policy(const struct xm_property *properties, uint32_t n)
{
    bool has = false;
    for (uint32_t i = 0; i < n; i++)
        has |= strcmp(properties[i].key, "MODEL_DISTRIBUTION_POLICY") == 0 &&
               properties[i].value[0];
    return has;
}

/* Returns the list of devices that share the model; NULL: one device runs the whole model. */
static const char *
mesh_of(const char *device, const struct xm_property *properties, uint32_t n_properties)
{
    static const char hetero[] = "HETERO:";
    uint32_t rank;
    const char *list = xm_mesh_list(device);
    if (device && strncmp(device, hetero, strlen(hetero)) == 0 && strchr(device, ',') &&
        has_policy(properties, n_properties))
        return device + strlen(hetero);
    return list || xm_mpi_ranks(&rank) == 1 ? list : device ? device : "AUTO";
}

enum xm_status
xm_core_compile(const struct xm_core *c, struct xm_graph *g, const char *device,
                const struct xm_property *properties, uint32_t n_properties,
                const struct xm_compile_options *options, struct xm_compiled **out,
                struct xm_error *err)
{
    struct found on = {0};
    struct xm_device_wish w;
    const char *mesh =
        options && options->replace ? NULL : mesh_of(device, properties, n_properties);
    if (mesh)
        return xm_mesh_compile(c, g, mesh, properties, n_properties, options, out, err);
    enum xm_status s = xm_device_wish_make(device, properties, n_properties, &w, err);
    if (s == XM_OK)
        s = find_wished(c, &w, &on, err);
    if (s == XM_OK)
        s = on.plugin->ops->compile(on.plugin, on.index, g, w.properties, w.n, options,
                                    out, err);
    else
        xm_graph_destroy(g);
    xm_device_wish_free(&w);
    return s;
}

enum xm_status
xm_core_import(const struct xm_core *c, const struct xm_import *from, const char *device,
               const struct xm_property *properties, uint32_t n_properties,
               struct xm_compiled **out, struct xm_error *err)
{
    struct found on = {0};
    struct xm_device_wish w;
    enum xm_status s = xm_device_wish_make(device, properties, n_properties, &w, err);
    if (s == XM_OK)
        s = find_wished(c, &w, &on, err);
    if (s == XM_OK && !on.plugin->ops->import_model)
        s = xm_fail(err, XM_UNSUPPORTED, "device %s cannot import compiled models",
                    on.plugin->ops->name);
    if (s == XM_OK)
        s = on.plugin->ops->import_model(on.plugin, on.index, from, w.properties, w.n,
                                         out, err);
    xm_device_wish_free(&w);
    return s;
}
