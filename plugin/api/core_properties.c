/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of the core and its devices. The core's own are rows of a table; all others belong to
 * the plugins.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/api/api.h"
#include "runtime/util/log.h"

/* ---- the core's own ---------------------------------------------------------------- */

static const struct {
    const char *text;
    enum xm_log_level level;
} log_levels[] = {
    {"LOG_NONE", XM_LOG_NONE},       {"LOG_ERROR", XM_LOG_ERROR},
    {"LOG_WARNING", XM_LOG_WARNING}, {"LOG_INFO", XM_LOG_INFO},
    {"LOG_DEBUG", XM_LOG_DEBUG},     {"LOG_TRACE", XM_LOG_DEBUG},
};

/* Returns the value as ov_core_get_property returns it; NULL: it is not accepted. */
static const char *
take_any(const char *value)
{
    return value;
}

static const char *
take_bool(const char *value)
{
    static const char *const yes[] = {"YES", "TRUE", "true", "1"};
    static const char *const no[] = {"NO", "FALSE", "false", "0"};
    for (size_t i = 0; i < XM_ARRAY_LEN(yes); i++) {
        if (strcmp(value, yes[i]) == 0)
            return "YES";
        if (strcmp(value, no[i]) == 0)
            return "NO";
    }
    return NULL;
}

static const char *
take_number(const char *value)
{
    return value[0] && value[strspn(value, "0123456789")] == '\0' ? value : NULL;
}

static const char *
take_log_level(const char *value)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(log_levels); i++) {
        if (strcmp(value, log_levels[i].text) == 0) {
            xm_log_set_level(log_levels[i].level);
            return value;
        }
    }
    return NULL;
}

static const struct {
    const char *key, *value; /* the key and its default value */
    const char *(*take)(const char *value);
    const char *accepted;
    bool is_for_devices; /* devices have it too */
} rows[] = {
    {"CACHE_DIR", "", take_any, "a folder", true},
    {"LOG_LEVEL", "LOG_WARNING", take_log_level,
     "LOG_NONE, LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG or LOG_TRACE", false},
    {"ENABLE_MMAP", "YES", take_bool, "YES or NO", false},
    {"FORCE_TBB_TERMINATE", "NO", take_bool, "YES or NO", true},
    {"AUTO_BATCH_TIMEOUT", "1000", take_number, "a number of milliseconds", false},
};
enum { N_ROWS = XM_ARRAY_LEN(rows) };

struct xm_api_core_properties {
    pthread_mutex_t lock;
    char *values[N_ROWS]; /* NULL: the default */
};

struct xm_api_core_properties *
xm_api_core_properties_create(void)
{
    struct xm_api_core_properties *p = xm_calloc(1, sizeof(*p));
    if (p)
        pthread_mutex_init(&p->lock, NULL);
    return p;
}

void
xm_api_core_properties_destroy(struct xm_api_core_properties *p)
{
    if (!p)
        return;
    for (int i = 0; i < N_ROWS; i++)
        xm_free(p->values[i]);
    pthread_mutex_destroy(&p->lock);
    xm_free(p);
}

/* Returns the row of a key; N_ROWS: the core has no such property. */
static int
find_row(const char *key)
{
    int i = 0;
    while (i < N_ROWS && strcmp(rows[i].key, key) != 0)
        i++;
    return i;
}

static enum xm_status
set_own(struct xm_api_core_properties *p, int row, const char *value,
        struct xm_error *err)
{
    const char *taken = rows[row].take(value);
    if (!taken)
        return xm_fail(err, XM_INVALID, "%s is '%s': expected %s", rows[row].key, value,
                       rows[row].accepted);
    char *copy = xm_strdup(taken);
    if (!copy)
        return xm_no_memory(err, "%s", rows[row].key);
    pthread_mutex_lock(&p->lock);
    xm_free(p->values[row]);
    p->values[row] = copy;
    pthread_mutex_unlock(&p->lock);
    return XM_OK;
}

static ov_status_e
get_own(struct xm_api_core_properties *p, const char *key, char **value)
{
    int row = find_row(key);
    if (row == N_ROWS)
        return xm_api_fail(GENERAL_ERROR, "Unsupported property %s by the core", key);
    struct xm_strbuf text = {0};
    pthread_mutex_lock(&p->lock);
    xm_strbuf_add(&text, p->values[row] ? p->values[row] : rows[row].value);
    pthread_mutex_unlock(&p->lock);
    return xm_api_give_text(&text, value);
}

/* ---- setting ----------------------------------------------------------------------- */

static enum xm_status
set_one(const ov_core_t *core, const char *device, const struct xm_property *p,
        struct xm_error *err)
{
    if (device && device[0])
        return xm_api_set_for_device(core, device, p, false, err);
    const int row = find_row(p->key);
    if (row < N_ROWS)
        XM_TRY(set_own(core->properties, row, p->value, err));
    if (row < N_ROWS && !rows[row].is_for_devices)
        return XM_OK;
    return xm_api_set_for_device(core, NULL, p, row < N_ROWS, err);
}

ov_status_e
ov_core_set_properties(const ov_core_t *core, const char *device_name,
                       size_t num_properties, const ov_property_t *properties)
{
    struct xm_error err = {0};
    struct xm_property *checked = NULL;
    if (!xm_api_is(core, XM_API_CORE) || num_properties == 0)
        return xm_api_refuse(__func__);
    ov_status_e s = xm_api_properties_from_array(num_properties, properties, &checked);
    if (s != OK)
        return s;
    for (size_t i = 0; i < num_properties && err.status == XM_OK; i++)
        set_one(core, device_name, &checked[i], &err);
    xm_free(checked);
    return xm_api_error(&err);
}

ov_status_e
ov_core_set_property(const ov_core_t *core, const char *device_name, ...)
{
    ov_property_t property;
    va_list args;
    if (!xm_api_is(core, XM_API_CORE))
        return xm_api_refuse(__func__);
    va_start(args, device_name);
    property.key = va_arg(args, const char *);
    property.value = va_arg(args, const void *);
    va_end(args);
    return ov_core_set_properties(core, device_name, 1, &property);
}

/* ---- getting ----------------------------------------------------------------------- */

ov_status_e
ov_core_get_property(const ov_core_t *core, const char *device_name,
                     const char *property_key, char **property_value)
{
    struct xm_error err = {0};
    struct xm_strbuf value = {0};
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    if (!xm_api_is(core, XM_API_CORE) || !property_key || !property_value)
        return xm_api_refuse(__func__);
    if (!device_name)
        return UNKNOW_EXCEPTION; /* as OpenVINO; "" means the core */
    if (!device_name[0])
        return get_own(core->properties, property_key, property_value);
    if (xm_api_use_device(core, device_name, &plugin, &index, &err) == XM_OK &&
        plugin->ops->get_property(plugin, index, property_key, &value, &err) == XM_OK)
        return xm_api_give_text(&value, property_value);
    xm_strbuf_free(&value);
    return xm_api_error(&err);
}
