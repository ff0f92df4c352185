/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of the core's devices, and compiling for them.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/api/api.h"

/* ---- making contexts ------------------------------------------------------------------ */

static ov_status_e
read_device_id(const struct xm_api_handles *h, uint32_t *out)
{
    char *end = NULL;
    if (!h->device)
        return OK;
    const unsigned long n = strtoul(h->device, &end, 10);
    if (h->device[0] < '0' || h->device[0] > '9' || *end || n > UINT32_MAX)
        return xm_api_fail(GENERAL_ERROR,
                           "OCL_CONTEXT_DEVICE_ID is '%s': expected a number", h->device);
    *out = (uint32_t)n;
    return OK;
}

/* Reads the handles of a context. Keys for memory are ignored. */
static ov_status_e
find_handles(const struct xm_api_handles *h, struct xm_context_wish *out)
{
    if (h->n == 0)
        return OK;
    if (!h->context_type)
        return xm_api_fail(GENERAL_ERROR, "CONTEXT_TYPE is missing");
    if (strcmp(h->context_type, "OCL") != 0)
        return xm_api_fail(GENERAL_ERROR, "CONTEXT_TYPE is %s: expected OCL",
                           h->context_type);
    if (!h->cl_context && !h->cl_queue)
        return xm_api_fail(GENERAL_ERROR, "OCL_CONTEXT or OCL_QUEUE is missing");
    if (h->tile && strcmp(h->tile, "-1") != 0)
        return xm_api_fail(
            GENERAL_ERROR,
            "TILE_ID is %s: the tiles of a device cannot be used separately", h->tile);
    out->cl_context = h->cl_context;
    out->cl_queue = h->cl_queue;
    return read_device_id(h, &out->device);
}

static ov_status_e
create_context(const ov_core_t *core, const char *device, const struct xm_api_handles *h,
               ov_remote_context_t **out)
{
    struct xm_error err = {0};
    struct xm_context_wish wish = {0};
    struct xm_plugin *plugin = NULL;
    struct xm_context *context = NULL;
    uint32_t index = 0;
    ov_status_e s = find_handles(h, &wish);
    if (s != OK)
        return s;
    if (xm_api_use_device(core, device, &plugin, &index, &err) != XM_OK)
        return xm_api_error(&err);
    if (!plugin->ops->create_context)
        return xm_api_fail(GENERAL_ERROR, "device %s has no remote contexts",
                           plugin->ops->name);
    plugin->ops->create_context(plugin, index, &wish, &context, &err);
    return context ? xm_api_context_give(context, out) : xm_api_error(&err);
}

ov_status_e
ov_core_create_context(const ov_core_t *core, const char *device_name,
                       const size_t context_args_size, ov_remote_context_t **context, ...)
{
    struct xm_api_handles h;
    va_list args;
    if (!xm_api_is(core, XM_API_CORE) || !device_name || !context)
        return xm_api_refuse(__func__);
    va_start(args, context);
    ov_status_e s = xm_api_handles_from_args(context_args_size, args, &h);
    va_end(args);
    return s == OK ? create_context(core, device_name, &h, context) : s;
}

ov_status_e
ov_core_create_context_props(const ov_core_t *core, const char *device_name,
                             size_t num_properties, const ov_property_t *properties,
                             ov_remote_context_t **context)
{
    struct xm_api_handles h;
    if (!xm_api_is(core, XM_API_CORE) || !device_name || !context)
        return xm_api_refuse(__func__);
    ov_status_e s = xm_api_handles_from_array(num_properties, properties, &h);
    return s == OK ? create_context(core, device_name, &h, context) : s;
}

ov_status_e
ov_core_get_default_context(const ov_core_t *core, const char *device_name,
                            ov_remote_context_t **context)
{
    const struct xm_api_handles none = {0};
    if (!xm_api_is(core, XM_API_CORE) || !device_name || !context)
        return xm_api_refuse(__func__);
    return create_context(core, device_name, &none, context);
}

/* ---- compiling ------------------------------------------------------------------------ */

/* Finds the context's device in this core. */
static enum xm_status
use_context(const ov_core_t *core, const struct xm_context *c, struct xm_plugin **plugin,
            struct xm_error *err)
{
    struct xm_strbuf name = {0};
    uint32_t index = 0;
    c->ops->device_name(c, &name);
    enum xm_status s =
        xm_api_use_device(core, xm_strbuf_text(&name), plugin, &index, err);
    xm_strbuf_free(&name);
    if (s == XM_OK && !(*plugin)->ops->compile_in)
        s = xm_fail(err, XM_UNSUPPORTED, "device %s has no remote contexts",
                    (*plugin)->ops->name);
    return s;
}

/* Owns the properties from now on. */
static ov_status_e
compile_in(const ov_core_t *core, const ov_model_t *model, ov_remote_context_t *context,
           struct xm_property *properties, size_t n, ov_compiled_model_t **out)
{
    struct xm_error err = {0};
    struct xm_graph *g = NULL;
    struct xm_compiled *c = NULL;
    struct xm_plugin *plugin = NULL;
    struct xm_mapping *owner = (struct xm_mapping *)&model->base;
    const ov_status_e checked = xm_api_model_check(model, "compiled");
    if (checked != OK) {
        xm_free(properties);
        return checked;
    }
    if (use_context(core, context->context, &plugin, &err) == XM_OK &&
        xm_graph_clone(model->graph, owner, &g, &err) == XM_OK)
        plugin->ops->compile_in(plugin, context->context, g, properties, (uint32_t)n, &c,
                                &err);
    xm_free(properties);
    return c ? xm_api_compiled_create(c, NULL, out) : xm_api_error(&err);
}

static bool
is_compile_wish(const ov_core_t *core, const ov_model_t *model,
                const ov_remote_context_t *context, ov_compiled_model_t **compiled)
{
    return xm_api_is(core, XM_API_CORE) && xm_api_is(model, XM_API_MODEL) &&
           xm_api_is(context, XM_API_CONTEXT) && compiled;
}

ov_status_e
ov_core_compile_model_with_context(const ov_core_t *core, const ov_model_t *model,
                                   const ov_remote_context_t *context,
                                   const size_t property_args_size,
                                   ov_compiled_model_t **compiled_model, ...)
{
    struct xm_property *p = NULL;
    va_list args;
    if (!is_compile_wish(core, model, context, compiled_model))
        return xm_api_refuse(__func__);
    va_start(args, compiled_model);
    ov_status_e s = xm_api_properties_from_args(property_args_size, args, &p);
    va_end(args);
    return s == OK ? compile_in(core, model, (ov_remote_context_t *)context, p,
                                property_args_size / 2, compiled_model)
                   : s;
}

ov_status_e
ov_core_compile_model_with_context_props(const ov_core_t *core, const ov_model_t *model,
                                         const ov_remote_context_t *context,
                                         size_t num_properties,
                                         const ov_property_t *properties,
                                         ov_compiled_model_t **compiled_model)
{
    struct xm_property *p = NULL;
    if (!is_compile_wish(core, model, context, compiled_model))
        return xm_api_refuse(__func__);
    ov_status_e s = xm_api_properties_from_array(num_properties, properties, &p);
    return s == OK ? compile_in(core, model, (ov_remote_context_t *)context, p,
                                num_properties, compiled_model)
                   : s;
}

ov_status_e
ov_compiled_model_get_context(const ov_compiled_model_t *compiled_model,
                              ov_remote_context_t **context)
{
    struct xm_error err = {0};
    struct xm_context *c = NULL;
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !context)
        return xm_api_refuse(__func__);
    struct xm_compiled *compiled = compiled_model->compiled;
    if (!compiled->ops->get_context)
        return xm_api_fail(GENERAL_ERROR,
                           "the device of this compiled model has no remote contexts");
    compiled->ops->get_context(compiled, &c, &err);
    return c ? xm_api_context_give(c, context) : xm_api_error(&err);
}
