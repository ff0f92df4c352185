/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of plugins by name, built-in or from lists and libraries. core_devices.c finds the
 * device that a name means.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "plugin/core.h"
#include "plugin/device_names.h"
#include "plugin/external/external.h"
#include "plugin/external/plugins_file.h"
#include "plugin/plugin.h"
#include "runtime/util/log.h"

/* A device name with its plugin. Entries are only added; later their members may change. */
struct entry {
    struct entry *next;
    char *name;
    char *path; /* of the library; NULL: the caller gave the plugin */
    /* set when the plugin is loaded; their texts are owned */
    struct xm_property *properties;
    uint32_t n_properties;
    struct xm_plugin *plugin; /* NULL: not loaded yet */
    struct xm_error failed;   /* why loading failed */
    bool is_said;             /* a warning about `failed` has been logged */
    bool is_loading;          /* by thread `loader`; other threads wait for `loaded` */
    pthread_t loader;
    pthread_cond_t loaded;
};

/* A list of loaded plugins that callers may hold. A longer list replaces it, but it is kept,
 * because callers may still read it. */
struct snapshot {
    struct snapshot *before;
    uint32_t n;
    struct xm_plugin *list[];
};

/* The lock is not held during calls of plugins and of the log function, because these may call the
 * core. */
struct registry {
    pthread_mutex_t lock; /* protects the members below */
    struct entry *first, *last;
    struct snapshot *snapshots; /* newest first */
    atomic_uint asked;          /* bits that xm_core_is_first has returned true for */
};

struct xm_core {
    struct registry *registry;
};

/* ---- entries ---- */

static void
free_entry(struct entry *e)
{
    if (!e)
        return;
    if (e->plugin)
        e->plugin->ops->destroy(e->plugin);
    for (uint32_t i = 0; i < e->n_properties; i++) {
        xm_free((char *)e->properties[i].key);
        xm_free((char *)e->properties[i].value);
    }
    pthread_cond_destroy(&e->loaded);
    xm_free(e->properties);
    xm_free(e->name);
    xm_free(e->path);
    xm_free(e);
}

static struct entry *
find_entry(const struct registry *r, const char *name, size_t n)
{
    struct entry *e = r->first;
    while (e && !(strlen(e->name) == n && memcmp(e->name, name, n) == 0))
        e = e->next;
    return e;
}

/* Returns an entry; `path` may be NULL. NULL: out of memory. */
static struct entry *
make_entry(const char *name, const char *path)
{
    struct entry *e = xm_calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    pthread_cond_init(&e->loaded, NULL);
    e->name = xm_strdup(name);
    e->path = path ? xm_strdup(path) : NULL;
    if (e->name && (!path || e->path))
        return e;
    free_entry(e);
    return NULL;
}

static bool
copy_properties(struct entry *e, const struct xm_plugin_record *from)
{
    e->properties = xm_calloc(from->n_properties + 1u, sizeof(*e->properties));
    for (uint32_t i = 0; e->properties && i < from->n_properties; i++) {
        struct xm_property *p = &e->properties[e->n_properties++];
        p->key = xm_strdup(from->properties[i].key);
        p->value = xm_strdup(from->properties[i].value);
        if (!p->key || !p->value)
            return false;
    }
    return e->properties != NULL;
}

static enum xm_status
fail_taken(const char *name, struct xm_error *err)
{
    return xm_fail(err, XM_INVALID, "a plugin for device '%s' is registered already",
                   name);
}

static enum xm_status
check_name(const char *name, struct xm_error *err)
{
    const char *why = xm_external_refuse_name(name);
    return why ? xm_fail(err, XM_INVALID, "'%.80s' cannot be the name of a device: %s",
                         name, why)
               : XM_OK;
}

/* Adds `e`, which the registry owns from now on, or frees it after a failure; then its plugin, if
 * it has one, belongs to the caller again. */
static enum xm_status
append(struct registry *r, struct entry *e, struct xm_error *err)
{
    pthread_mutex_lock(&r->lock);
    const bool is_taken = find_entry(r, e->name, strlen(e->name)) != NULL;
    if (!is_taken) {
        *(r->last ? &r->last->next : &r->first) = e;
        r->last = e;
    }
    pthread_mutex_unlock(&r->lock);
    if (!is_taken)
        return XM_OK;
    enum xm_status s = fail_taken(e->name, err);
    e->plugin = NULL;
    free_entry(e);
    return s;
}

/* Loads the plugin from the entry's library and sets its properties. */
static enum xm_status
make_plugin(const struct entry *e, struct xm_plugin **out, struct xm_error *err)
{
    struct xm_plugin *p = NULL;
    enum xm_status s = xm_external_load(e->name, e->path, &p, err);
    for (uint32_t i = 0; i < e->n_properties && s == XM_OK; i++)
        s = p->ops->set_property(p, e->properties[i].key, e->properties[i].value, err);
    if (s == XM_OK)
        *out = p;
    else if (p)
        p->ops->destroy(p);
    return s;
}

/* Loads the plugin the first time, and returns the same outcome later. The caller holds the lock,
 * which is released while the plugin is loaded; other threads that need this plugin wait. */
static enum xm_status
load(struct registry *r, struct entry *e, struct xm_error *err)
{
    if (e->is_loading && pthread_equal(e->loader, pthread_self()))
        return xm_fail(err, XM_INVALID,
                       "device %s is requested while its plugin is being loaded",
                       e->name);
    while (e->is_loading)
        pthread_cond_wait(&e->loaded, &r->lock);
    if (!e->plugin && e->failed.status == XM_OK) {
        struct xm_plugin *p = NULL;
        struct xm_error why = {0};
        e->is_loading = true;
        e->loader = pthread_self();
        pthread_mutex_unlock(&r->lock);
        make_plugin(e, &p, &why);
        pthread_mutex_lock(&r->lock);
        e->plugin = p;
        e->failed = why;
        e->is_loading = false;
        pthread_cond_broadcast(&e->loaded);
    }
    return e->plugin ? XM_OK : xm_fail(err, e->failed.status, "%s", e->failed.text);
}

/* As load, but logs a warning, once for each entry, if the plugin cannot be loaded. For callers
 * that continue without the plugin. */
static enum xm_status
load_or_warn(struct registry *r, struct entry *e)
{
    enum xm_status s = load(r, e, NULL);
    if (e->failed.status == XM_OK || e->is_said)
        return s;
    e->is_said = true;
    pthread_mutex_unlock(&r->lock);
    xm_log(XM_LOG_WARNING, "device %s is not available: %s", e->name, e->failed.text);
    pthread_mutex_lock(&r->lock);
    return s;
}

/* ---- life ---- */

enum xm_status
xm_core_register(struct xm_core *c, struct xm_plugin *p, struct xm_error *err)
{
    struct entry *e = make_entry(p->ops->name, NULL);
    if (!e)
        return xm_no_memory(err, "a device plugin");
    e->plugin = p;
    return append(c->registry, e, err);
}

/* Returns the entry with this name, which is valid as long as the registry; NULL: there is none. */
static struct entry *
look_up(struct registry *r, const char *name)
{
    pthread_mutex_lock(&r->lock);
    struct entry *e = find_entry(r, name, strlen(name));
    pthread_mutex_unlock(&r->lock);
    return e;
}

enum xm_status
xm_core_add_library(const struct xm_core *c, const char *name, const char *path,
                    struct xm_error *err)
{
    struct xm_plugin *p = NULL;
    XM_TRY(check_name(name, err));
    if (look_up(c->registry, name))
        return fail_taken(name, err);
    struct entry *e = make_entry(name, path);
    if (!e)
        return xm_no_memory(err, "a device plugin");
    enum xm_status s = make_plugin(e, &p, err);
    if (s != XM_OK) {
        free_entry(e);
        return s;
    }
    e->plugin = p;
    s = append(c->registry, e, err);
    if (s != XM_OK)
        p->ops->destroy(p);
    return s;
}

/* Whether the library is a plugin made for OpenVINO. Programs may pass OpenVINO's own list, whose
 * libraries do not implement xemoe/plugin.h. */
static bool
is_openvinos(const char *location)
{
    static const char prefix[] = "libopenvino_";
    const char *slash = strrchr(location, '/');
    return strncmp(slash ? slash + 1 : location, prefix, strlen(prefix)) == 0;
}

static enum xm_status
add_record(struct registry *r, const struct xm_plugin_record *p, struct xm_error *err)
{
    const struct entry *old = look_up(r, p->name);
    if (xm_device_list(p->name) || (old && !old->path)) {
        /* OpenVINO's list has these names, too; in any other list such a name is probably a
         * mistake */
        xm_log(is_openvinos(p->location) ? XM_LOG_INFO : XM_LOG_WARNING,
               "plugin %s of the plugin list is not loaded: the device is built in",
               p->name);
        return XM_OK;
    }
    if (is_openvinos(p->location)) {
        xm_log(XM_LOG_WARNING,
               "plugin %s of the plugin list is not loaded: '%s' is named like "
               "OpenVINO's own plugins, which xemoe cannot load; a plugin of xemoe needs "
               "another file name",
               p->name, p->location);
        return XM_OK;
    }
    if (old)
        return strcmp(old->path, p->location) == 0 ? XM_OK : fail_taken(p->name, err);
    XM_TRY(check_name(p->name, err));
    struct entry *e = make_entry(p->name, p->location);
    if (!e || !copy_properties(e, p)) {
        free_entry(e);
        return xm_no_memory(err, "a device plugin");
    }
    return append(r, e, err);
}

enum xm_status
xm_core_load_list(const struct xm_core *c, const char *xml_path, struct xm_error *err)
{
    struct xm_plugins_file file;
    enum xm_status s = xm_plugins_file_read(xml_path, &file, err);
    for (const struct xm_plugin_record *p = file.first; p && s == XM_OK; p = p->next)
        s = add_record(c->registry, p, err);
    xm_plugins_file_free(&file);
    return s;
}

/* Loads the plugin lists that XM_PLUGINS names: paths separated by colons. */
static enum xm_status
load_lists_of_user(struct xm_core *c, struct xm_error *err)
{
    const char *paths = xm_env("XM_PLUGINS");
    char *copy = paths ? xm_strdup(paths) : NULL;
    enum xm_status s = paths && !copy ? xm_no_memory(err, "a device plugin") : XM_OK;
    for (char *next = copy; next && s == XM_OK;) {
        char *path = next, *colon = strchr(path, ':');
        next = colon ? colon + 1 : NULL;
        if (colon)
            *colon = '\0';
        if (path[0])
            s = xm_core_load_list(c, path, err);
    }
    if (s != XM_OK)
        xm_error_prefix(err, "XM_PLUGINS");
    xm_free(copy);
    return s;
}

static enum xm_status
register_built_in(struct xm_core *c, struct xm_error *err)
{
    static enum xm_status (*const built_in[])(struct xm_plugin **, struct xm_error *) = {
        xm_gpu_plugin_create, xm_cpu_plugin_create, xm_reference_plugin_create};
    for (size_t i = 0; i < XM_ARRAY_LEN(built_in); i++) {
        struct xm_plugin *p = NULL;
        XM_TRY(built_in[i](&p, err));
        enum xm_status s = xm_core_register(c, p, err);
        if (s != XM_OK) {
            p->ops->destroy(p);
            return s;
        }
    }
    return XM_OK;
}

enum xm_status
xm_core_create(struct xm_core **out, struct xm_error *err)
{
    XM_TRY(xm_debug_check(err));
    struct xm_core *c = xm_calloc(1, sizeof(*c));
    struct registry *r = xm_calloc(1, sizeof(*r));
    if (!c || !r) {
        xm_free(c);
        xm_free(r);
        return xm_no_memory(err, "the core");
    }
    c->registry = r;
    pthread_mutex_init(&r->lock, NULL);
    enum xm_status s = register_built_in(c, err);
    if (s == XM_OK)
        s = load_lists_of_user(c, err);
    if (s == XM_OK)
        *out = c;
    else
        xm_core_destroy(c);
    return s;
}

void
xm_core_destroy(struct xm_core *c)
{
    if (!c)
        return;
    struct registry *r = c->registry;
    for (struct entry *e = r->first; e;) {
        struct entry *next = e->next;
        free_entry(e);
        e = next;
    }
    while (r->snapshots) {
        struct snapshot *before = r->snapshots->before;
        xm_free(r->snapshots);
        r->snapshots = before;
    }
    pthread_mutex_destroy(&r->lock);
    xm_free(r);
    xm_free(c);
}

/* Returns the list of loaded plugins, which is valid as long as the registry. The caller holds the
 * lock. NULL: out of memory. */
static const struct snapshot *
take_snapshot(struct registry *r)
{
    uint32_t n = 0;
    for (const struct entry *e = r->first; e; e = e->next)
        n += e->plugin != NULL;
    if (r->snapshots && r->snapshots->n == n)
        return r->snapshots;
    struct snapshot *s = xm_calloc(1, sizeof(*s) + n * sizeof(s->list[0]));
    if (!s)
        return NULL;
    for (const struct entry *e = r->first; e; e = e->next) {
        if (e->plugin)
            s->list[s->n++] = e->plugin;
    }
    s->before = r->snapshots;
    return r->snapshots = s;
}

uint32_t
xm_core_count(const struct xm_core *c)
{
    struct registry *r = c->registry;
    uint32_t n = 0;
    pthread_mutex_lock(&r->lock);
    for (const struct entry *e = r->first; e; e = e->next)
        n++;
    pthread_mutex_unlock(&r->lock);
    return n;
}

uint32_t
xm_core_plugins(const struct xm_core *c, struct xm_plugin *const **list)
{
    struct registry *r = c->registry;
    pthread_mutex_lock(&r->lock);
    for (struct entry *e = r->first; e; e = e->next)
        load_or_warn(r, e);
    const struct snapshot *s = take_snapshot(r);
    if (!s)
        s = r->snapshots; /* out of memory: an older list lacks only the plugins loaded since */
    pthread_mutex_unlock(&r->lock);
    *list = s ? s->list : NULL;
    return s ? s->n : 0;
}

const char *
xm_core_library_of(const struct xm_core *c, const struct xm_plugin *p)
{
    struct registry *r = c->registry;
    pthread_mutex_lock(&r->lock);
    const struct entry *e = r->first;
    while (e && e->plugin != p)
        e = e->next;
    pthread_mutex_unlock(&r->lock);
    return e ? e->path : NULL;
}

void
xm_core_unload_libraries(void)
{
    xm_library_unload_idle();
}

/* ---- for core_devices.c ---- */

enum xm_status
xm_core_plugin(const struct xm_core *c, const char *name, size_t n,
               struct xm_plugin **out, struct xm_error *err)
{
    struct registry *r = c->registry;
    pthread_mutex_lock(&r->lock);
    struct entry *e = find_entry(r, name, n);
    enum xm_status s = e ? load(r, e, err) : XM_NOT_FOUND;
    if (s == XM_OK)
        *out = e->plugin;
    pthread_mutex_unlock(&r->lock);
    return s;
}

void
xm_core_warn_of_broken(const struct xm_core *c, const char *name, size_t n)
{
    struct registry *r = c->registry;
    pthread_mutex_lock(&r->lock);
    struct entry *e = find_entry(r, name, n);
    if (e)
        load_or_warn(r, e);
    pthread_mutex_unlock(&r->lock);
}

bool
xm_core_is_first(const struct xm_core *c, uint32_t bit)
{
    return !(atomic_fetch_or(&c->registry->asked, bit) & bit);
}
