/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/benchmark_app/benchmark_shapes.h"
#include "runtime/util/device_list.h"
#include "runtime/util/json.h"
#include "runtime/util/new_file.h"

/* ---- the list ---------------------------------------------------------------------- */

static struct xm_benchmark_property *
find_property(const struct xm_benchmark_config *c, const char *device, const char *key)
{
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->list[i].device, device) == 0 && strcmp(c->list[i].key, key) == 0)
            return &c->list[i];
    }
    return NULL;
}

const char *
xm_benchmark_config_value(const struct xm_benchmark_config *c, const char *device,
                          const char *key)
{
    const struct xm_benchmark_property *p = find_property(c, device, key);
    return p ? p->value : NULL;
}

static void
free_property(struct xm_benchmark_property *p)
{
    xm_free(p->device);
    xm_free(p->key);
    xm_free(p->value);
}

/* Sets a property; replaces an older value. */
static enum xm_status
set(struct xm_benchmark_config *c, const char *device, const char *key, const char *value,
    const char *source, struct xm_error *err)
{
    struct xm_benchmark_property p = {xm_strdup(device), xm_strdup(key), xm_strdup(value),
                                      source, false};
    struct xm_benchmark_property *old = find_property(c, device, key), *grown = c->list;
    if (!old)
        grown = xm_grow(c->list, &c->capacity, c->n + 1, sizeof(*grown));
    if (!p.device || !p.key || !p.value || !grown) {
        free_property(&p);
        return xm_no_memory(err, "properties");
    }
    if (old) {
        free_property(old);
        *old = p;
        return XM_OK;
    }
    c->list = grown;
    c->list[c->n++] = p;
    return XM_OK;
}

void
xm_benchmark_config_free(struct xm_benchmark_config *c)
{
    for (size_t i = 0; i < c->n; i++)
        free_property(&c->list[i]);
    for (size_t i = 0; i < c->n_devices; i++)
        xm_free(c->devices[i]);
    xm_free(c->list);
    xm_free(c->devices);
    *c = (struct xm_benchmark_config){0};
}

/* ---- devices ----------------------------------------------------------------------- */

static enum xm_status
add_device(struct xm_benchmark_config *c, const char *name, struct xm_error *err)
{
    char **grown =
        xm_grow(c->devices, &c->devices_capacity, c->n_devices + 1, sizeof(*c->devices));
    if (!grown)
        return xm_no_memory(err, "properties");
    c->devices = grown;
    c->devices[c->n_devices] = xm_strdup(name);
    return c->devices[c->n_devices++] ? XM_OK : xm_no_memory(err, "properties");
}

/* Finds the devices: "GPU", or each of "AUTO:GPU,CPU". If a list names none ("AUTO:-CPU"), the part
 * before the colon stands for the chosen device. */
static enum xm_status
find_devices(struct xm_benchmark_config *c, const char *text, struct xm_error *err)
{
    const char *list = xm_device_list(text);
    char name[XM_DEVICE_NAME];
    while (list && xm_device_list_next(&list, name)) {
        if (name[0] != '-')
            XM_TRY(add_device(c, name, err));
    }
    return c->n_devices ? XM_OK : add_device(c, text, err);
}

/* ---- from flags -------------------------------------------------------------------- */

/* Checks that each item of "DEVICE:VALUE,…" names a device of -d. */
static enum xm_status
check_devices(const struct xm_benchmark_config *c, const char *flag, const char *text,
              struct xm_error *err)
{
    struct xm_slice rest = xm_slice_of(text, strlen(text)), name, value;
    while (xm_benchmark_next_item(&rest, &name, &value)) {
        bool known = name.n == 0;
        for (size_t i = 0; i < c->n_devices && !known; i++)
            known =
                xm_slice_equal(name, xm_slice_of(c->devices[i], strlen(c->devices[i])));
        if (!known)
            return xm_fail(
                err, XM_INVALID,
                "option %s: Incorrect device name '%.*s': -d has no such device", flag,
                (int)name.n, name.text);
    }
    return XM_OK;
}

/* Sets a property from a flag's value: "VALUE" or "DEVICE:VALUE,…". */
static enum xm_status
set_by_device(struct xm_benchmark_config *c, const char *flag, const char *text,
              const char *key, struct xm_error *err)
{
    bool is_meant = false;
    if (!text)
        return XM_OK;
    XM_TRY(check_devices(c, flag, text, err));
    for (size_t i = 0; i < c->n_devices; i++) {
        const struct xm_slice value = xm_benchmark_value_of(text, c->devices[i]);
        struct xm_strbuf copy = {0};
        if (value.n == 0)
            continue;
        xm_strbuf_add_n(&copy, value.text, value.n);
        const enum xm_status s =
            set(c, c->devices[i], key, xm_strbuf_text(&copy), flag, err);
        xm_strbuf_free(&copy);
        XM_TRY(s);
        is_meant = true;
    }
    return is_meant ? XM_OK
                    : xm_fail(err, XM_INVALID,
                              "option %s names none of the devices of -d, found '%.60s'",
                              flag, text);
}

/* Returns the PERFORMANCE_HINT for a word of -hint; NULL: the device's default. */
static const char *
hint_value(const char *word)
{
    static const char *const hints[][2] = {
        {"throughput", "THROUGHPUT"},
        {"tput", "THROUGHPUT"},
        {"latency", "LATENCY"},
        {"cumulative_throughput", "CUMULATIVE_THROUGHPUT"},
        {"ctput", "CUMULATIVE_THROUGHPUT"},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(hints); i++) {
        if (strcmp(word, hints[i][0]) == 0)
            return hints[i][1];
    }
    return NULL;
}

static enum xm_status
set_hint(struct xm_benchmark_config *c, const struct xm_benchmark_args *a,
         struct xm_error *err)
{
    static const char key[] = "PERFORMANCE_HINT";
    const char *said = a->hint ? hint_value(a->hint) : NULL;
    const bool is_sync = a->api && strcmp(a->api, "sync") == 0;
    for (size_t i = 0; i < c->n_devices; i++) {
        const char *device = c->devices[i];
        const bool has_own =
            find_property(c, device, key) || find_property(c, device, "NUM_STREAMS");
        if (said)
            XM_TRY(set(c, device, key, said, "-hint", err));
        else if (!a->hint && !has_own)
            XM_TRY(set(c, device, key, is_sync ? "LATENCY" : "THROUGHPUT", NULL, err));
    }
    return XM_OK;
}

static enum xm_status
set_flags(struct xm_benchmark_config *c, const struct xm_benchmark_args *a,
          struct xm_error *err)
{
    char threads[24], requests[24];
    snprintf(requests, sizeof(requests), "%" PRIu64, a->nireq);
    snprintf(threads, sizeof(threads), "%" PRIu64, a->nthreads);
    const struct {
        const char *flag, *text, *key;
    } rows[] = {
        {"-nstreams", a->nstreams, "NUM_STREAMS"},
        {"-nthreads", a->nthreads == XM_BENCHMARK_UNSAID ? NULL : threads,
         "INFERENCE_NUM_THREADS"},
        {"-pin", a->pin, "ENABLE_CPU_PINNING"},
        {"-infer_precision", a->infer_precision, "INFERENCE_PRECISION_HINT"},
        {"-pc", xm_benchmark_args_have_counters(a) ? "YES" : NULL, "PERF_COUNT"},
        {"-nireq", a->nireq ? requests : NULL, "PERFORMANCE_HINT_NUM_REQUESTS"},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++)
        XM_TRY(set_by_device(c, rows[i].flag, rows[i].text, rows[i].key, err));
    /* not by set_by_device, because a path may have commas */
    for (size_t i = 0; a->cache_dir && i < c->n_devices; i++)
        XM_TRY(set(c, c->devices[i], "CACHE_DIR", a->cache_dir, "-cdir", err));
    return set_hint(c, a, err);
}

/* ---- files ------------------------------------------------------------------------- */

/* Sets a property from JSON. Texts, numbers and booleans are all converted to text. */
static enum xm_status
load_value(struct xm_benchmark_config *c, const char *device, const char *key,
           yyjson_val *value, struct xm_error *err)
{
    char *text = NULL;
    const char *plain = yyjson_get_str(value);
    if (yyjson_is_bool(value))
        plain = yyjson_get_bool(value) ? "YES" : "NO";
    else if (yyjson_is_num(value))
        plain = text = yyjson_val_write_opts(value, 0, &xm_json_allocator, NULL, NULL);
    const enum xm_status s =
        plain ? set(c, device, key, plain, "-load_config", err)
              : xm_fail(err, XM_INVALID,
                        "'%.60s' of device %.60s is not a text or a number", key, device);
    xm_free(text);
    return s;
}

static enum xm_status
load_device(struct xm_benchmark_config *c, const char *device, yyjson_val *properties,
            struct xm_error *err)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(properties))
        return xm_fail(err, XM_INVALID, "'%.60s' is not an object of properties", device);
    yyjson_obj_foreach(properties, i, n, key, value)
        XM_TRY(load_value(c, device, yyjson_get_str(key), value, err));
    return XM_OK;
}

static enum xm_status
load(struct xm_benchmark_config *c, const char *path, struct xm_error *err)
{
    yyjson_doc *doc = NULL;
    size_t i, n;
    yyjson_val *key, *value;
    enum xm_status s = xm_json_read(path, &doc, err);
    if (s == XM_OK && !yyjson_is_obj(yyjson_doc_get_root(doc)))
        s = xm_fail(err, XM_INVALID, "'%.200s' is not a JSON object of devices", path);
    yyjson_obj_foreach(s == XM_OK ? yyjson_doc_get_root(doc) : NULL, i, n, key, value)
    {
        if (s == XM_OK)
            s = load_device(c, yyjson_get_str(key), value, err);
    }
    yyjson_doc_free(doc);
    if (s != XM_OK)
        xm_error_prefix(err, "-load_config");
    return s;
}

enum xm_status
xm_benchmark_config_make(const struct xm_benchmark_args *a,
                         struct xm_benchmark_config *out, struct xm_error *err)
{
    *out = (struct xm_benchmark_config){0};
    XM_TRY(find_devices(out, a->device, err));
    if (a->load_config)
        XM_TRY(load(out, a->load_config, err));
    return set_flags(out, a, err);
}

enum xm_status
xm_benchmark_config_dump(const struct xm_benchmark_config *c, const char *path,
                         struct xm_error *err)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&xm_json_allocator);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    bool good = root != NULL;
    for (size_t i = 0; i < c->n && good; i++) {
        const struct xm_benchmark_property *p = &c->list[i];
        if (p->is_unknown)
            continue;
        yyjson_mut_val *device = yyjson_mut_obj_get(root, p->device);
        if (!device) {
            device = yyjson_mut_obj(doc);
            good = yyjson_mut_obj_add_val(doc, root, p->device, device);
        }
        good = good && yyjson_mut_obj_add_str(doc, device, p->key, p->value);
    }
    yyjson_mut_doc_set_root(doc, root);
    size_t n = 0;
    char *json = good ? yyjson_mut_write_opts(doc, YYJSON_WRITE_PRETTY,
                                              &xm_json_allocator, &n, NULL)
                      : NULL;
    yyjson_mut_doc_free(doc);
    const struct xm_strbuf text = {.text = json, .n = n, .failed = !json};
    const enum xm_status s = xm_write_text_file(path, &text, err);
    xm_free(json);
    if (s != XM_OK)
        xm_error_prefix(err, "-dump_config");
    return s;
}
