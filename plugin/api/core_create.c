/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: creation, versions, devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/api/api.h"
#include "plugin/device_names.h"
#include "runtime/engine.h"
#include "runtime/util/mapped_file.h"
#include "xemoe/xemoe.h"

/* The release of OpenVINO's API that xemoe offers; programs compare the number at its beginning. */
#define BUILD_NUMBER "2026.4.1-0-xemoe-" XM_VERSION

/* ---- life -------------------------------------------------------------------------- */

static void
destroy_core(ov_core_t *c)
{
    xm_core_destroy(c->core);
    xm_api_core_properties_destroy(c->properties);
    xm_api_settings_destroy(c->settings);
    xm_free(c);
}

ov_status_e
ov_core_create(ov_core_t **core)
{
    if (!core)
        return xm_api_refuse(__func__);
    struct xm_error err = {0};
    ov_core_t *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a core");
    c->properties = xm_api_core_properties_create();
    c->settings = xm_api_settings_create();
    if (!c->properties || !c->settings)
        xm_no_memory(&err, "the properties of a core");
    else
        xm_core_create(&c->core, &err);
    ov_status_e s =
        err.status == XM_OK ? xm_api_new_handle(c, XM_API_CORE) : xm_api_error(&err);
    if (s == OK)
        *core = c;
    else
        destroy_core(c);
    return s;
}

/* Adds the plugins of a list to the core. */
static ov_status_e
add_list(const ov_core_t *core, const char *path)
{
    struct xm_error err = {0};
    const enum xm_status s = xm_core_load_list(core->core, path, &err);
    return s == XM_NOT_FOUND || s == XM_IO
               ? xm_api_fail(GENERAL_ERROR, "Could not open the file: \"%s\"", path)
               : xm_api_error(&err);
}

ov_status_e
ov_core_create_with_config(const char *xml_config_file, ov_core_t **core)
{
    ov_core_t *c = NULL;
    if (!xml_config_file || !core)
        return xm_api_refuse(__func__);
    ov_status_e s = ov_core_create(&c);
    if (s == OK && xml_config_file[0])
        s = add_list(c, xml_config_file);
    if (s == OK)
        *core = c;
    /* after a failure, whose sentence stays stored */
    else if (xm_api_handle_drop(c, XM_API_CORE))
        destroy_core(c);
    return s;
}

ov_status_e
xm_register_plugin(const ov_core_t *core, const char *device_name, const char *library)
{
    struct xm_error err = {0};
    if (!xm_api_is(core, XM_API_CORE) || !device_name || !library)
        return xm_api_refuse(__func__);
    xm_core_add_library(core->core, device_name, library, &err);
    return xm_api_error(&err);
}

void
ov_core_free(ov_core_t *core)
{
    if (!xm_api_handle_drop(core, XM_API_CORE))
        return;
    destroy_core(core);
    xm_api_clear_error();
}

void
ov_shutdown(void)
{
    xm_core_unload_libraries();
    xm_api_clear_error(); /* the only other static state */
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
        return xm_api_refuse(__func__);
    xm_mapped_file_watch(lost, &err);
    return xm_api_error(&err);
}

ov_status_e
xm_watch_builds(xm_build_callback_t built, void *context)
{
    xm_build_watch(built, context);
    return OK;
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
        return xm_api_refuse(__func__);
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

static bool
has_version(const ov_core_version_list_t *list, const char *name)
{
    for (size_t i = 0; i < list->size; i++) {
        if (strcmp(list->versions[i].device_name, name) == 0)
            return true;
    }
    return false;
}

/* Adds the version of a device, unless the list has it. */
static ov_status_e
add_version(const ov_core_t *core, const char *device, ov_core_version_list_t *list)
{
    struct xm_plugin *plugin = NULL;
    struct xm_error err = {0};
    uint32_t index;
    if (has_version(list, device))
        return OK;
    if (xm_core_find(core->core, device, &plugin, &index, &err) != XM_OK)
        return xm_api_fail(NOT_FOUND, "%s", err.text);
    ov_core_version_t *v = &list->versions[list->size++];
    v->device_name = xm_strdup(device);
    if (!fill_version(&v->version, plugin->ops->description) || !v->device_name)
        return xm_api_fail(GENERAL_ERROR, "out of memory for the versions");
    return OK;
}

static int
by_device_name(const void *a, const void *b)
{
    return strcmp(((const ov_core_version_t *)a)->device_name,
                  ((const ov_core_version_t *)b)->device_name);
}

/* For "HETERO:GPU,CPU", adds the versions of GPU, CPU and HETERO. */
static ov_status_e
fill_versions(const ov_core_t *core, const char *device, ov_core_version_list_t *list)
{
    char name[XM_DEVICE_NAME];
    const char *several = xm_device_list(device), *rest = several ? several : device;
    ov_status_e s = OK;
    while (s == OK && xm_device_list_next(&rest, name)) {
        if (name[0] != '-')
            s = add_version(core, name, list);
    }
    if (s == OK && several) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ":"), device);
        s = add_version(core, name, list);
    }
    if (s == OK && list->size == 0) /* "" names no device: returns its error */
        s = add_version(core, device, list);
    return s;
}

ov_status_e
ov_core_get_versions_by_device_name(const ov_core_t *core, const char *device_name,
                                    ov_core_version_list_t *versions)
{
    if (!xm_api_is(core, XM_API_CORE) || !device_name || !versions)
        return xm_api_refuse(__func__);
    size_t n = 2; /* the last name, and the name before a list */
    for (const char *p = device_name; *p; p++)
        n += *p == ',';
    ov_core_version_list_t list = {xm_calloc(n, sizeof(ov_core_version_t)), 0};
    ov_status_e s = list.versions
                        ? fill_versions(core, device_name, &list)
                        : xm_api_fail(GENERAL_ERROR, "out of memory for the versions");
    if (s == OK) {
        qsort(list.versions, list.size, sizeof(*list.versions), by_device_name);
        *versions = list;
    } else {
        ov_core_versions_free(&list);
    }
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
    if (strcmp(name, "REFERENCE") == 0)
        return; /* hidden, because programs that use all devices do not expect it */
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
    if (!xm_api_is(core, XM_API_CORE) || !devices)
        return xm_api_refuse(__func__);
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
