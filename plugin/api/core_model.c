/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading, compiling and importing models.
 *
 * The functions that take properties come in pairs, with variadic arguments and with an
 * array; both end in the same static function.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/api/api.h"
#include "plugin/device_names.h"
#include "plugin/pipeline/package.h"
#include "plugin/readers/openvino_ir.h"
#include "xemoe/xemoe.h"

/* ---- reading ----------------------------------------------------------------------- */

/* Returns the error of a failed read. If there is no file, its text is the one that programs search
 * for. */
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
    if (!xm_api_is(core, XM_API_CORE) || !model_path || !model)
        return xm_api_refuse(__func__);
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
    if (!xm_api_is(core, XM_API_CORE) || !model_str || str_len == 0 || !model)
        return xm_api_refuse(__func__);
    if (weights && !xm_api_is(weights, XM_API_TENSOR))
        return xm_api_refuse(__func__);
    if (weights && weights->type == STRING)
        return xm_api_fail(
            GENERAL_ERROR,
            "the weights must be a tensor of bytes, found a tensor of strings");
    if (weights && xm_api_tensor_is_remote(weights))
        return xm_api_fail(GENERAL_ERROR,
                           "the weights must be in host memory, found device memory");
    struct xm_mapping *owner = weights ? (struct xm_mapping *)&weights->base : NULL;
    if (xm_openvino_ir_read_memory(
            model_str, strnlen(model_str, str_len), weights ? weights->data : NULL,
            weights ? weights->bytes : 0, owner, &g, &err) != XM_OK)
        return xm_api_error(&err);
    return xm_api_model_create(g, model);
}

/* ---- extensions -------------------------------------------------------------------- */

/* Fails if the file cannot be read or is not an ELF library. */
static ov_status_e
check_library(const char *path)
{
    static const char elf[4] = {0x7f, 'E', 'L', 'F'};
    char head[sizeof(elf)] = {0};
    FILE *f = fopen(path, "rb");
    if (!f)
        return xm_api_fail(GENERAL_ERROR, "Could not open the file: \"%s\": %s", path,
                           strerror(errno));
    const size_t n = fread(head, 1, sizeof(head), f);
    fclose(f);
    if (n == sizeof(head) && memcmp(head, elf, sizeof(elf)) == 0)
        return OK;
    return xm_api_fail(GENERAL_ERROR, "extension %s is not a shared library", path);
}

/* Loads nothing: a library made for OpenVINO would load OpenVINO. openvino_tokenizers is accepted,
 * because its operations are built in. */
ov_status_e
ov_core_add_extension(const ov_core_t *core, const char *path)
{
    if (!xm_api_is(core, XM_API_CORE) || !path)
        return xm_api_refuse(__func__);
    const char *slash = strrchr(path, '/');
    ov_status_e s = check_library(path);
    if (s != OK || strstr(slash ? slash + 1 : path, "openvino_tokenizers"))
        return s;
    return xm_api_fail(GENERAL_ERROR,
                       "extension %s is not loaded: operations of other libraries are "
                       "not supported, and those of openvino_tokenizers are built in",
                       path);
}

/* ---- compiling --------------------------------------------------------------------- */

/* Owns the graph from now on. */
static ov_status_e
compile_graph(const ov_core_t *core, struct xm_graph *g, const char *device,
              const struct xm_property *properties, size_t n, ov_compiled_model_t **out)
{
    struct xm_error err = {0};
    struct xm_compiled *c = NULL;
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    struct xm_device_wish w;
    static const struct xm_compile_options options = {.for_api = true};
    if (xm_device_wish_make(device, properties, (uint32_t)n, &w, &err) == XM_OK &&
        xm_api_use_device(core, w.device, &plugin, &index, &err) == XM_OK)
        xm_core_compile(core->core, g, device, properties, (uint32_t)n, &options, &c,
                        &err);
    else
        xm_graph_destroy(g);
    xm_device_wish_free(&w);
    return c ? xm_api_compiled_create(c, device, out) : xm_api_error(&err);
}

/* Owns the properties from now on. */
static ov_status_e
compile_model(const ov_core_t *core, const ov_model_t *model, const char *device,
              struct xm_property *properties, size_t n, ov_compiled_model_t **out)
{
    struct xm_error err = {0};
    struct xm_graph *g = NULL;
    struct xm_mapping *owner = (struct xm_mapping *)&model->base;
    ov_status_e s = xm_api_model_check(model, "compiled");
    if (s == OK)
        s = xm_graph_clone(model->graph, owner, &g, &err) == XM_OK
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
    if (!xm_api_is(core, XM_API_CORE) || !xm_api_is(model, XM_API_MODEL) ||
        !compiled_model)
        return xm_api_refuse(__func__);
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
    if (!xm_api_is(core, XM_API_CORE) || !xm_api_is(model, XM_API_MODEL) ||
        !compiled_model)
        return xm_api_refuse(__func__);
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
    if (!xm_api_is(core, XM_API_CORE) || !model_path || !compiled_model)
        return xm_api_refuse(__func__);
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
    if (!xm_api_is(core, XM_API_CORE) || !model_path || !compiled_model)
        return xm_api_refuse(__func__);
    ov_status_e s = xm_api_properties_from_array(num_properties, properties, &p);
    return s == OK ? xm_api_compile_file(core, model_path, device_name, p, num_properties,
                                         compiled_model)
                   : s;
}

/* ---- importing --------------------------------------------------------------------- */

/* Whether the device can import models; if not, stores the sentence. */
static ov_status_e
check_importer(const ov_core_t *core, const char *device)
{
    struct xm_error err = {0};
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    if (xm_api_use_device(core, device, &plugin, &index, &err) != XM_OK)
        return xm_api_error(&err);
    return plugin->ops->import_model
               ? OK
               : xm_api_fail(NOT_IMPLEMENTED, "device %s cannot import compiled models",
                             device);
}

ov_status_e
ov_core_import_model(const ov_core_t *core, const char *content,
                     const size_t content_size, const char *device_name,
                     ov_compiled_model_t **compiled_model)
{
    struct xm_error err = {0};
    struct xm_compiled *c = NULL;
    if (!xm_api_is(core, XM_API_CORE) || !content || content_size == 0 || !device_name ||
        !compiled_model)
        return xm_api_refuse(__func__);
    ov_status_e s = check_importer(core, device_name);
    if (s != OK)
        return s;
    /* the caller may free its bytes afterwards */
    uint8_t *copy = xm_malloc(content_size);
    if (copy)
        memcpy(copy, content, content_size);
    const struct xm_import from = {xm_mapping_of_heap(copy), copy, content_size, NULL};
    if (!from.owner)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a compiled model");
    xm_core_import(core->core, &from, device_name, NULL, 0, &c, &err);
    xm_mapping_unref(from.owner); /* the compiled model has its own references */
    return c ? xm_api_compiled_create(c, device_name, compiled_model)
             : xm_api_error(&err);
}

ov_status_e
xm_import_model_from_file(const ov_core_t *core, const char *path,
                          const char *device_name, ov_compiled_model_t **compiled_model)
{
    struct xm_error err = {0};
    struct xm_compiled *c = NULL;
    if (!xm_api_is(core, XM_API_CORE) || !path || !device_name || !compiled_model)
        return xm_api_refuse(__func__);
    ov_status_e s = check_importer(core, device_name);
    if (s != OK)
        return s;
    xm_core_import_file(core->core, path, device_name, NULL, 0, &c, &err);
    return c ? xm_api_compiled_create(c, device_name, compiled_model)
             : xm_api_error(&err);
}
