/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties set for devices. Until a device is first used, its settings are only stored, as in
 * OpenVINO, which has not loaded the plugin yet: the first call that uses the device fails if its
 * plugin does not know a key or rejects a value, and so does every later one until the property is
 * set again. After the first use, settings are passed to the plugin immediately.
 */
#include <pthread.h>
#include <string.h>

#include "plugin/api/api.h"
#include "plugin/device_names.h"

struct setting {
    const struct xm_plugin *plugin; /* NULL: for all plugins */
    char *key, *value;
    bool is_taken; /* a plugin, or the core, has accepted the key */
};

struct xm_api_settings {
    pthread_mutex_t lock;
    struct setting *list;
    size_t n;
    struct xm_plugin **used;
    size_t n_used;
};

/* ---- life -------------------------------------------------------------------------- */

struct xm_api_settings *
xm_api_settings_create(void)
{
    struct xm_api_settings *s = xm_calloc(1, sizeof(*s));
    if (s)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void
free_setting(struct setting *at)
{
    xm_free(at->key);
    xm_free(at->value);
}

void
xm_api_settings_destroy(struct xm_api_settings *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free_setting(&s->list[i]);
    xm_free(s->list);
    xm_free(s->used);
    pthread_mutex_destroy(&s->lock);
    xm_free(s);
}

/* ---- the list ---------------------------------------------------------------------- */

static struct setting *
find_setting(struct xm_api_settings *s, const struct xm_plugin *plugin, const char *key)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->list[i].plugin == plugin && strcmp(s->list[i].key, key) == 0)
            return &s->list[i];
    }
    return NULL;
}

static void
drop_setting(struct xm_api_settings *s, struct setting *at)
{
    if (!at)
        return;
    free_setting(at);
    s->n--;
    memmove(at, at + 1, (size_t)(s->list + s->n - at) * sizeof(*at));
}

/* Stores a setting. The last call wins; a failure leaves the previous value. */
static enum xm_status
keep_setting(struct xm_api_settings *s, const struct xm_plugin *plugin, const char *key,
             const char *value, bool is_taken, struct xm_error *err)
{
    struct setting fresh = {plugin, xm_strdup(key), xm_strdup(value), is_taken};
    struct setting *grown = xm_realloc(s->list, (s->n + 1) * sizeof(*grown));
    if (grown)
        s->list = grown;
    if (!grown || !fresh.key || !fresh.value) {
        free_setting(&fresh);
        return xm_no_memory(err, "%s", key);
    }
    drop_setting(s, find_setting(s, plugin, key));
    s->list[s->n++] = fresh;
    return XM_OK;
}

static bool
is_used(const struct xm_api_settings *s, const struct xm_plugin *plugin)
{
    for (size_t i = 0; i < s->n_used; i++) {
        if (s->used[i] == plugin)
            return true;
    }
    return false;
}

/* ---- setting ----------------------------------------------------------------------- */

static enum xm_status
set_one(struct xm_api_settings *s, struct xm_plugin *plugin, const struct xm_property *p,
        struct xm_error *err)
{
    if (is_used(s, plugin))
        return plugin->ops->set_property(plugin, p->key, p->value, err);
    return keep_setting(s, plugin, p->key, p->value, false, err);
}

/* Sets a property on all plugins in use. Fails if none of them knows the key and all plugins are in
 * use. */
static enum xm_status
set_all(const ov_core_t *core, const struct xm_property *p, bool is_cores,
        struct xm_error *err)
{
    struct xm_api_settings *s = core->settings;
    bool is_known = is_cores;
    for (size_t i = 0; i < s->n_used; i++) {
        struct xm_error local = {0};
        s->used[i]->ops->set_property(s->used[i], p->key, p->value, &local);
        if (local.status != XM_OK && local.status != XM_NOT_FOUND)
            return xm_fail(err, local.status, "%s", local.text);
        is_known |= local.status == XM_OK;
    }
    if (!is_known && s->n_used == xm_core_count(core->core))
        return xm_fail(err, XM_NOT_FOUND, "Unsupported property %s", p->key);
    return keep_setting(s, NULL, p->key, p->value, is_known, err);
}

/* Whether the name belongs to a plugin, even if the device does not exist: "GPU.7", or "CPU"
 * without a driver. */
static bool
is_name_of_device(const struct xm_core *c, const char *device)
{
    struct xm_plugin *const *plugins;
    const uint32_t n = xm_core_plugins(c, &plugins);
    const size_t length = strcspn(device, ".");
    for (uint32_t i = 0; i < n; i++) {
        if (strlen(plugins[i]->ops->name) == length &&
            memcmp(plugins[i]->ops->name, device, length) == 0)
            return true;
    }
    return xm_device_list(device) != NULL;
}

enum xm_status
xm_api_set_for_device(const ov_core_t *core, const char *device,
                      const struct xm_property *p, bool is_cores, struct xm_error *err)
{
    struct xm_plugin *plugin = NULL;
    struct xm_error unknown = {0};
    uint32_t index;
    if (device && xm_core_find(core->core, device, &plugin, &index, &unknown) != XM_OK)
        return is_name_of_device(core->core, device)
                   ? XM_OK /* fails when the device is used */
                   : xm_fail(err, unknown.status, "%s", unknown.text);
    pthread_mutex_lock(&core->settings->lock);
    const enum xm_status s = device ? set_one(core->settings, plugin, p, err)
                                    : set_all(core, p, is_cores, err);
    pthread_mutex_unlock(&core->settings->lock);
    return s;
}

/* ---- the first use ----------------------------------------------------------------- */

static enum xm_status
hand_over(struct xm_api_settings *s, struct xm_plugin *plugin, struct xm_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        struct setting *at = &s->list[i];
        struct xm_error local = {0};
        if (at->plugin && at->plugin != plugin)
            continue;
        plugin->ops->set_property(plugin, at->key, at->value, &local);
        if (local.status == XM_NOT_FOUND && at->is_taken)
            continue; /* the setting was for another plugin */
        if (local.status != XM_OK)
            return xm_fail(err, local.status, "%s", local.text);
        at->is_taken = true;
    }
    return XM_OK;
}

static enum xm_status
note_used(struct xm_api_settings *s, struct xm_plugin *plugin, struct xm_error *err)
{
    struct xm_plugin **grown = xm_realloc(s->used, (s->n_used + 1) * sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "a device");
    s->used = grown;
    s->used[s->n_used++] = plugin;
    return XM_OK;
}

enum xm_status
xm_api_use_device(const ov_core_t *core, const char *device, struct xm_plugin **plugin,
                  uint32_t *index, struct xm_error *err)
{
    struct xm_api_settings *s = core->settings;
    XM_TRY(xm_core_find(core->core, device, plugin, index, err));
    pthread_mutex_lock(&s->lock);
    enum xm_status status = XM_OK;
    if (!is_used(s, *plugin)) {
        status = hand_over(s, *plugin, err);
        if (status == XM_OK)
            status = note_used(s, *plugin, err);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}
