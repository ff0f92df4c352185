/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: life, versions, devices.
 */
#include <string.h>

#include "plugin/api/api.h"
#include "runtime/util/log.h"
#include "runtime/util/mapped_file.h"
#include "xemoe/xemoe.h"

/* The release of the API that is offered; programs compare the number in front. */
#define BUILD_NUMBER "2026.4.1-0-xemoe-" XM_VERSION

/* ---- life -------------------------------------------------------------------------- */

ov_status_e
ov_core_create(ov_core_t **core)
{
    if (!core)
        return INVALID_C_PARAM;
    struct xm_error err = {0};
    ov_core_t *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a core");
    c->properties = xm_api_core_properties_create();
    if (!c->properties)
        xm_fail(&err, XM_NO_MEMORY, "out of memory for the properties of a core");
    else
        xm_core_create(&c->core, &err);
    if (err.status != XM_OK) {
        xm_api_core_properties_destroy(c->properties);
        xm_free(c);
        return xm_api_error(&err);
    }
    *core = c;
    return OK;
}

ov_status_e
ov_core_create_with_config(const char *xml_config_file, ov_core_t **core)
{
    if (!xml_config_file || !core)
        return INVALID_C_PARAM;
    if (xml_config_file[0]) {
        struct xm_mapped_file file;
        if (xm_mapped_file_open(xml_config_file, &file, NULL) != XM_OK)
            return xm_api_fail(GENERAL_ERROR, "Could not open the file: \"%s\"",
                               xml_config_file);
        xm_mapped_file_close(&file);
        xm_log(XM_LOG_INFO, "%s is not read: all plugins are built in", xml_config_file);
    }
    return ov_core_create(core);
}

void
ov_core_free(ov_core_t *core)
{
    if (!core)
        return;
    xm_core_destroy(core->core);
    xm_api_core_properties_destroy(core->properties);
    xm_free(core);
    xm_api_clear_error();
}

void
ov_shutdown(void)
{
    xm_api_clear_error(); /* there are no other static objects */
}

/* ---- versions ---------------------------------------------------------------------- */

const char *
xm_version(void)
{
    return XM_VERSION;
}

ov_status_e
xm_watch_model_files(xm_lost_file_callback_t lost)
{
    struct xm_error err = {0};
    if (!lost)
        return INVALID_C_PARAM;
    xm_mapped_file_watch(lost, &err);
    return xm_api_error(&err);
}

static bool
fill_version(ov_version_t *v, const char *description)
{
    v->buildNumber = xm_strdup(BUILD_NUMBER);
    v->description = xm_strdup(description);
    return v->buildNumber && v->description;
}

ov_status_e
ov_get_openvino_version(ov_version_t *version)
{
    ov_version_t v;
    if (!version)
        return INVALID_C_PARAM;
    if (!fill_version(&v, "xemoe, OpenVINO's C API")) {
        ov_version_free(&v);
        return xm_api_fail(GENERAL_ERROR, "out of memory for a version");
    }
    *version = v;
    return OK;
}

void
ov_version_free(ov_version_t *version)
{
    if (!version)
        return;
    ov_free(version->buildNumber);
    ov_free(version->description);
    *version = (ov_version_t){NULL, NULL};
}

void
ov_core_versions_free(ov_core_version_list_t *versions)
{
    if (!versions)
        return;
    for (size_t i = 0; versions->versions && i < versions->size; i++) {
        ov_free(versions->versions[i].device_name);
        ov_version_free(&versions->versions[i].version);
    }
    xm_free(versions->versions);
    *versions = (ov_core_version_list_t){NULL, 0};
}

static ov_status_e
fill_versions(const ov_core_t *core, char *names, ov_core_version_list_t *list)
{
    for (char *next = names; next;) {
        char *name = next, *comma = strchr(name, ',');
        struct xm_plugin *plugin = NULL;
        struct xm_error err = {0};
        uint32_t index;
        next = comma ? comma + 1 : NULL;
        if (comma)
            *comma = '\0';
        if (xm_core_find(core->core, name, &plugin, &index, &err) != XM_OK)
            return xm_api_fail(NOT_FOUND, "%s", err.text);
        ov_core_version_t *v = &list->versions[list->size++];
        v->device_name = xm_strdup(name);
        if (!fill_version(&v->version, plugin->ops->description) || !v->device_name)
            return xm_api_fail(GENERAL_ERROR, "out of memory for the versions");
    }
    return OK;
}

ov_status_e
ov_core_get_versions_by_device_name(const ov_core_t *core, const char *device_name,
                                    ov_core_version_list_t *versions)
{
    if (!core || !device_name || !versions)
        return INVALID_C_PARAM;
    size_t n = 1;
    for (const char *p = device_name; *p; p++)
        n += *p == ',';
    ov_core_version_list_t list = {xm_calloc(n, sizeof(ov_core_version_t)), 0};
    char *names = xm_strdup(device_name);
    ov_status_e s = list.versions && names
                        ? fill_versions(core, names, &list)
                        : xm_api_fail(GENERAL_ERROR, "out of memory for the versions");
    xm_free(names);
    if (s == OK)
        *versions = list;
    else
        ov_core_versions_free(&list);
    return s;
}

/* ---- devices ----------------------------------------------------------------------- */

struct device_list {
    ov_available_devices_t devices;
    bool failed;
};

static void
add_device(const char *name, void *ctx)
{
    struct device_list *list = ctx;
    size_t n = list->devices.size;
    char **grown = xm_realloc(list->devices.devices, (n + 1) * sizeof(*grown));
    char *copy = xm_strdup(name);
    if (grown)
        list->devices.devices = grown;
    if (!grown || !copy) {
        xm_free(copy);
        list->failed = true;
        return;
    }
    grown[n] = copy;
    list->devices.size = n + 1;
}

ov_status_e
ov_core_get_available_devices(const ov_core_t *core, ov_available_devices_t *devices)
{
    struct device_list list = {{NULL, 0}, false};
    if (!core || !devices)
        return INVALID_C_PARAM;
    xm_core_devices(core->core, add_device, &list);
    if (list.failed) {
        ov_available_devices_free(&list.devices);
        return xm_api_fail(GENERAL_ERROR, "out of memory for the list of devices");
    }
    *devices = list.devices;
    return OK;
}

void
ov_available_devices_free(ov_available_devices_t *devices)
{
    if (!devices)
        return;
    for (size_t i = 0; devices->devices && i < devices->size; i++)
        xm_free(devices->devices[i]);
    xm_free(devices->devices);
    *devices = (ov_available_devices_t){NULL, 0};
}
