/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions with wide-character paths: they convert the path to UTF-8 and call the function of the
 * same name without _unicode.
 */
#include <wchar.h>

#include <utf8proc.h>

#include "plugin/api/api.h"

static ov_status_e
narrow(const wchar_t *wide, char **out)
{
    struct xm_strbuf b = {0};
    xm_strbuf_add(&b, "");
    for (; *wide; wide++) {
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)*wide, bytes);
        if (n <= 0) {
            xm_strbuf_free(&b);
            return xm_api_fail(GENERAL_ERROR,
                               "a path contains U+%lX, which is not a valid character",
                               (unsigned long)*wide);
        }
        xm_strbuf_add_n(&b, (const char *)bytes, (size_t)n);
    }
    return xm_api_give_text(&b, out);
}

ov_status_e
ov_core_create_with_config_unicode(const wchar_t *xml_config_file_ws, ov_core_t **core)
{
    char *path = NULL;
    if (!xml_config_file_ws || !core)
        return xm_api_refuse(__func__);
    ov_status_e s = narrow(xml_config_file_ws, &path);
    if (s == OK)
        s = ov_core_create_with_config(path, core);
    xm_free(path);
    return s;
}

ov_status_e
ov_core_read_model_unicode(const ov_core_t *core, const wchar_t *model_path,
                           const wchar_t *bin_path, ov_model_t **model)
{
    char *path = NULL, *bin = NULL;
    if (!xm_api_is(core, XM_API_CORE) || !model_path || !model)
        return xm_api_refuse(__func__);
    ov_status_e s = narrow(model_path, &path);
    if (s == OK && bin_path)
        s = narrow(bin_path, &bin);
    if (s == OK)
        s = ov_core_read_model(core, path, bin, model);
    xm_free(path);
    xm_free(bin);
    return s;
}

/* Owns the properties from now on. */
static ov_status_e
compile_wide(const ov_core_t *core, const wchar_t *model_path, const char *device,
             struct xm_property *properties, size_t n, ov_compiled_model_t **out)
{
    char *path = NULL;
    ov_status_e s = narrow(model_path, &path);
    if (s == OK)
        s = xm_api_compile_file(core, path, device, properties, n, out);
    else
        xm_free(properties);
    xm_free(path);
    return s;
}

ov_status_e
ov_core_compile_model_from_file_unicode_props(const ov_core_t *core,
                                              const wchar_t *model_path,
                                              const char *device_name,
                                              size_t num_properties,
                                              const ov_property_t *properties,
                                              ov_compiled_model_t **compiled_model)
{
    struct xm_property *p = NULL;
    if (!xm_api_is(core, XM_API_CORE) || !model_path || !compiled_model)
        return xm_api_refuse(__func__);
    ov_status_e s = xm_api_properties_from_array(num_properties, properties, &p);
    return s == OK ? compile_wide(core, model_path, device_name, p, num_properties,
                                  compiled_model)
                   : s;
}

ov_status_e
ov_core_compile_model_from_file_unicode(const ov_core_t *core, const wchar_t *model_path,
                                        const char *device_name,
                                        const size_t property_args_size,
                                        ov_compiled_model_t **compiled_model, ...)
{
    struct xm_property *p = NULL;
    va_list args;
    if (!xm_api_is(core, XM_API_CORE) || !model_path || !compiled_model)
        return xm_api_refuse(__func__);
    va_start(args, compiled_model);
    ov_status_e s = xm_api_properties_from_args(property_args_size, args, &p);
    va_end(args);
    return s == OK ? compile_wide(core, model_path, device_name, p,
                                  property_args_size / 2, compiled_model)
                   : s;
}
