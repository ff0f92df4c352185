/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading, compiling and importing models.
 *
 * The functions that take properties come in pairs, with variadic arguments and with an
 * array; both end in the same static function.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "plugin/api/api.h"
#include "plugin/pipeline/package.h"
#include "plugin/readers/openvino_ir.h"
#include "xemoe/xemoe.h"

/* ---- reading ----------------------------------------------------------------------- */

/* What programs look for in the text where there is no such file. */
static ov_status_e
read_failed(const char *path, const struct xm_error *err)
{
    if (access(path, R_OK) == 0)
        return xm_api_error(err);
    return xm_api_fail(GENERAL_ERROR, "Could not open the file: \"%s\": %s", path,
                       strerror(errno));
}

ov_status_e
ov_core_read_model(const ov_core_t *core, const char *model_path, const char *bin_path,
                   ov_model_t **model)
{
    struct xm_error err = {0};
    struct xm_graph *g = NULL;
    if (!core || !model_path || !model)
        return INVALID_C_PARAM;
    if (xm_package_graph_of(model_path, bin_path, &g, &err) != XM_OK)
        return read_failed(model_path, &err);
    return xm_api_model_create(g, model);
}

ov_status_e
ov_core_read_model_from_memory_buffer(const ov_core_t *core, const char *model_str,
                                      const size_t str_len, const ov_tensor_t *weights,
                                      ov_model_t **model)
{
    struct xm_error err = {0};
    struct xm_graph *g = NULL;
    if (!core || !model_str || str_len == 0 || !model)
        return INVALID_C_PARAM;
    if (weights && weights->type != U8)
        return xm_api_fail(GENERAL_ERROR, "the weights must be a tensor of u8, not %s",
                           xm_element_text((enum xm_element)weights->type));
    struct xm_mapping *owner = weights ? (struct xm_mapping *)&weights->base : NULL;
    if (xm_openvino_ir_read_memory(model_str, str_len, weights ? weights->data : NULL,
                                   weights ? weights->bytes : 0, owner, &g,
                                   &err) != XM_OK)
        return xm_api_error(&err);
    return xm_api_model_create(g, model);
}

/* ---- compiling --------------------------------------------------------------------- */

/* Takes the graph over. */
static ov_status_e
compile_graph(const ov_core_t *core, struct xm_graph *g, const char *device,
              const struct xm_property *properties, size_t n, ov_compiled_model_t **out)
{
    struct xm_error err = {0};
    struct xm_compiled *c = NULL;
    if (xm_core_compile(core->core, g, device, properties, (uint32_t)n, NULL, &c, &err) !=
        XM_OK)
        return xm_api_error(&err);
    return xm_api_compiled_create(c, out);
}

/* Takes the properties over. */
static ov_status_e
compile_model(const ov_core_t *core, const ov_model_t *model, const char *device,
              struct xm_property *properties, size_t n, ov_compiled_model_t **out)
{
    struct xm_error err = {0};
    struct xm_graph *g = NULL;
    struct xm_mapping *owner = (struct xm_mapping *)&model->base;
    ov_status_e s = xm_graph_clone(model->graph, owner, &g, &err) == XM_OK
                        ? compile_graph(core, g, device, properties, n, out)
                        : xm_api_error(&err);
    xm_free(properties);
    return s;
}

ov_status_e
xm_api_compile_file(const ov_core_t *core, const char *path, const char *device,
                    struct xm_property *properties, size_t n, ov_compiled_model_t **out)
{
    struct xm_error err = {0};
    struct xm_graph *g = NULL;
    ov_status_e s = xm_package_graph_of(path, NULL, &g, &err) == XM_OK
                        ? compile_graph(core, g, device, properties, n, out)
                        : xm_api_error(&err);
    xm_free(properties);
    return s;
}

ov_status_e
ov_core_compile_model(const ov_core_t *core, const ov_model_t *model,
                      const char *device_name, const size_t property_args_size,
                      ov_compiled_model_t **compiled_model, ...)
{
    struct xm_property *p = NULL;
    va_list args;
    if (!core || !model || !compiled_model)
        return INVALID_C_PARAM;
    va_start(args, compiled_model);
    ov_status_e s = xm_api_properties_from_args(property_args_size, args, &p);
    va_end(args);
    return s == OK ? compile_model(core, model, device_name, p, property_args_size / 2,
                                   compiled_model)
                   : s;
}

ov_status_e
ov_core_compile_model_props(const ov_core_t *core, const ov_model_t *model,
                            const char *device_name, size_t num_properties,
                            const ov_property_t *properties,
                            ov_compiled_model_t **compiled_model)
{
    struct xm_property *p = NULL;
    if (!core || !model || !compiled_model)
        return INVALID_C_PARAM;
    ov_status_e s = xm_api_properties_from_array(num_properties, properties, &p);
    return s == OK ? compile_model(core, model, device_name, p, num_properties,
                                   compiled_model)
                   : s;
}

ov_status_e
ov_core_compile_model_from_file(const ov_core_t *core, const char *model_path,
                                const char *device_name, const size_t property_args_size,
                                ov_compiled_model_t **compiled_model, ...)
{
    struct xm_property *p = NULL;
    va_list args;
    if (!core || !model_path || !compiled_model)
        return INVALID_C_PARAM;
    va_start(args, compiled_model);
    ov_status_e s = xm_api_properties_from_args(property_args_size, args, &p);
    va_end(args);
    return s == OK ? xm_api_compile_file(core, model_path, device_name, p,
                                         property_args_size / 2, compiled_model)
                   : s;
}

ov_status_e
ov_core_compile_model_from_file_props(const ov_core_t *core, const char *model_path,
                                      const char *device_name, size_t num_properties,
                                      const ov_property_t *properties,
                                      ov_compiled_model_t **compiled_model)
{
    struct xm_property *p = NULL;
    if (!core || !model_path || !compiled_model)
        return INVALID_C_PARAM;
    ov_status_e s = xm_api_properties_from_array(num_properties, properties, &p);
    return s == OK ? xm_api_compile_file(core, model_path, device_name, p, num_properties,
                                         compiled_model)
                   : s;
}

/* ---- importing --------------------------------------------------------------------- */

/* Whether the device imports at all; else the sentence is kept. */
static ov_status_e
check_importer(const ov_core_t *core, const char *device)
{
    struct xm_error err = {0};
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    if (xm_core_find(core->core, device, &plugin, &index, &err) != XM_OK)
        return xm_api_error(&err);
    return plugin->ops->import_model
               ? OK
               : xm_api_fail(NOT_IMPLEMENTED, "device %s does not import compiled models",
                             device);
}

/* A copy of the caller's bytes, who may free them. */
struct copied_bytes {
    struct xm_mapping base;
    uint8_t *bytes;
};

static void
free_copy(struct xm_mapping *m)
{
    struct copied_bytes *c = (struct copied_bytes *)m;
    xm_free(c->bytes);
    xm_free(c);
}

static struct xm_mapping *
copy_bytes(const char *content, size_t n)
{
    struct copied_bytes *c = xm_calloc(1, sizeof(*c));
    uint8_t *bytes = xm_malloc(n);
    if (!c || !bytes) {
        xm_free(c);
        xm_free(bytes);
        return NULL;
    }
    memcpy(bytes, content, n);
    *c = (struct copied_bytes){.base = {.refs = 1, .free = free_copy}, .bytes = bytes};
    return &c->base;
}

ov_status_e
ov_core_import_model(const ov_core_t *core, const char *content,
                     const size_t content_size, const char *device_name,
                     ov_compiled_model_t **compiled_model)
{
    struct xm_error err = {0};
    struct xm_compiled *c = NULL;
    if (!core || !content || content_size == 0 || !device_name || !compiled_model)
        return INVALID_C_PARAM;
    ov_status_e s = check_importer(core, device_name);
    if (s != OK)
        return s;
    struct xm_mapping *copy = copy_bytes(content, content_size);
    if (!copy)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a compiled model");
    const struct xm_import from = {copy, ((struct copied_bytes *)copy)->bytes,
                                   content_size, NULL};
    xm_core_import(core->core, &from, device_name, NULL, 0, &c, &err);
    xm_mapping_unref(copy); /* what was made of it has references */
    return c ? xm_api_compiled_create(c, compiled_model) : xm_api_error(&err);
}

ov_status_e
xm_import_model_from_file(const ov_core_t *core, const char *path,
                          const char *device_name, ov_compiled_model_t **compiled_model)
{
    struct xm_error err = {0};
    struct xm_compiled *c = NULL;
    if (!core || !path || !device_name || !compiled_model)
        return INVALID_C_PARAM;
    ov_status_e s = check_importer(core, device_name);
    if (s != OK)
        return s;
    xm_core_import_file(core->core, path, device_name, NULL, 0, &c, &err);
    return c ? xm_api_compiled_create(c, compiled_model) : xm_api_error(&err);
}
