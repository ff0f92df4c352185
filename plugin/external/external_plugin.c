/* SPDX-License-Identifier: Apache-2.0
 *
 * Wraps an external plugin as a plugin of the core: checks its table, and calls its functions.
 */
#include <string.h>

#include "plugin/external/external.h"
#include "runtime/util/log.h"
#include "transformations/passes/slice_last_token.h"

enum { MAX_NAME = 63 };

struct external_plugin {
    struct xm_plugin base;
    struct xm_plugin_ops ops; /* of `base`, with this plugin's name */
    struct xm_external *shared;
};

/* ---- required members of the table --------------------------------------------------------- */

#define MEMBER(name)                                                                     \
    {                                                                                    \
#name, offsetof(xm_ext_ops, name)                                                \
    }
struct member {
    const char *name;
    size_t offset;
};
static const struct member needed[] = {
    MEMBER(compile), MEMBER(create_request), MEMBER(destroy_compiled), MEMBER(set_input),
    MEMBER(infer),   MEMBER(output),         MEMBER(destroy_request),
};
static const struct {
    struct member has, needs;
} pairs[] = {
    {MEMBER(import_model), MEMBER(compiled_port)},
    /* because the host does not know whether an imported model has states */
    {MEMBER(import_model), MEMBER(reset)},
    {MEMBER(profile), MEMBER(profile_reset)},
    {MEMBER(cancel), MEMBER(resume)},
    {MEMBER(create_context), MEMBER(context_params)},
    {MEMBER(create_context), MEMBER(destroy_context)},
    {MEMBER(create_context), MEMBER(compile_in)},
    {MEMBER(create_context), MEMBER(create_memory)},
    {MEMBER(create_context), MEMBER(memory_params)},
    {MEMBER(create_context), MEMBER(destroy_memory)},
    {MEMBER(create_context), MEMBER(set_remote_input)},
    {MEMBER(create_context), MEMBER(set_remote_output)},
};
#undef MEMBER

/* Whether a function of the table is set. All members are function pointers of equal size. */
static bool
has(const xm_ext_ops *ops, const struct member *m)
{
    void (*function)(void);
    memcpy(&function, (const char *)ops + m->offset, sizeof(function));
    return function != NULL;
}

static enum xm_status
check_table(const char *name, const xm_ext_ops *ops, struct xm_error *err)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(needed); i++) {
        if (!has(ops, &needed[i]))
            return xm_fail(err, XM_INVALID,
                           "plugin %s has no %s, which every plugin needs", name,
                           needed[i].name);
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(pairs); i++) {
        if (has(ops, &pairs[i].has) && !has(ops, &pairs[i].needs))
            return xm_fail(err, XM_INVALID,
                           "plugin %s has %s but no %s, which it then needs", name,
                           pairs[i].has.name, pairs[i].needs.name);
    }
    return XM_OK;
}

/* Copies the table. The first two members are the same in all versions; the others only in this
 * one. */
static enum xm_status
take_table(struct xm_external *x, const xm_ext_ops *ops, struct xm_error *err)
{
    if (!ops)
        return xm_fail(err, XM_INVALID, "plugin %s returned no table of functions",
                       x->name);
    if (ops->version != XM_EXT_VERSION)
        return xm_fail(err, XM_UNSUPPORTED,
                       "plugin %s was built for version %u of xemoe/plugin.h, but this "
                       "xemoe has version %u: build the plugin again",
                       x->name, ops->version, XM_EXT_VERSION);
    const size_t n = ops->bytes < sizeof(x->ops) ? ops->bytes : sizeof(x->ops);
    memcpy(&x->ops, ops, n);
    return check_table(x->name, &x->ops, err);
}

/* ---- the shared state ---------------------------------------------------------------------- */

void
xm_external_ref(struct xm_external *x)
{
    xm_refs_add(&x->refs);
}

void
xm_external_unref(struct xm_external *x)
{
    if (!x || xm_refs_drop(&x->refs) != 0)
        return;
    if (x->ops.destroy)
        x->ops.destroy(x->plugin);
    xm_library_close(x->library);
    xm_free(x->name);
    xm_free(x);
}

void
xm_external_print_name(const struct xm_external *x, uint32_t index, struct xm_strbuf *out)
{
    xm_strbuf_add(out, x->name);
    if (x->ops.count && x->ops.count(x->plugin) > 1)
        xm_strbuf_printf(out, ".%u", index);
}

static void
add_text(void *ctx, const void *bytes, uint64_t n)
{
    xm_strbuf_add_n(ctx, bytes, (size_t)n);
}

xm_ext_sink
xm_external_sink(struct xm_strbuf *out)
{
    return (xm_ext_sink){add_text, out};
}

bool
xm_external_is_status(int32_t status)
{
    return (status > XM_EXT_OK && status <= XM_EXT_CANCELLED) || status == XM_EXT_LOST;
}

enum xm_status
xm_external_status(const struct xm_external *x, const char *function, int32_t status,
                   xm_ext_error *why, struct xm_error *err)
{
    if (status == XM_EXT_OK)
        return XM_OK;
    why->text[sizeof(why->text) - 1] = '\0';
    for (char *p = why->text; *p; p++) {
        if (*p == '\n')
            *p = ' ';
    }
    const bool is_known = xm_external_is_status(status);
    const enum xm_status s = is_known ? (enum xm_status)status : XM_DEVICE;
    if (!is_known)
        return xm_fail(err, s, "plugin %s: %s returned %d, which is not a status%s%.300s",
                       x->name, function, status, why->text[0] ? ": " : "", why->text);
    if (!why->text[0])
        return xm_fail(err, s, "plugin %s: %s failed without a message: %s", x->name,
                       function, xm_status_text(s));
    return xm_fail(err, s, "plugin %s: %s", x->name, why->text);
}

/* ---- properties -------------------------------------------------------------------- */

static enum xm_status
answer(const struct xm_external *x, const struct xm_external_row *rows, size_t n_rows,
       const char *key, struct xm_strbuf *out, struct xm_error *err)
{
    const bool is_list = strcmp(key, "SUPPORTED_PROPERTIES") == 0;
    if (is_list)
        xm_strbuf_add(out, key);
    for (size_t i = 0; i < n_rows; i++) {
        if (is_list) {
            xm_strbuf_printf(out, " %s", rows[i].key);
        } else if (strcmp(rows[i].key, key) == 0) {
            xm_strbuf_add(out, rows[i].value);
            return XM_OK;
        }
    }
    return is_list ? XM_OK
                   : xm_fail(err, XM_NOT_FOUND, "Unsupported property %s by %s plugin",
                             key, x->name);
}

enum xm_status
xm_external_property(const struct xm_external *x, const struct xm_external_question *q,
                     const struct xm_external_row *rows, size_t n_rows, const char *key,
                     struct xm_strbuf *out, struct xm_error *err)
{
    xm_ext_error why = {""};
    struct xm_strbuf text = {0};
    const xm_ext_sink sink = xm_external_sink(&text);
    const int32_t status = q->ask(x, q->of, key, &sink, &why);
    enum xm_status s = XM_OK;
    if (status == XM_EXT_NOT_FOUND)
        s = answer(x, rows, n_rows, key, out, err);
    else if (status != XM_EXT_OK)
        s = xm_external_status(x, "a property", status, &why, err);
    else if (!xm_strbuf_ok(&text))
        s = xm_no_memory(err, "property %s", key);
    else
        xm_strbuf_add(out, xm_strbuf_text(&text));
    xm_strbuf_free(&text);
    return s;
}

static int32_t
ask_device(const struct xm_external *x, const void *of, const char *key,
           const xm_ext_sink *out, xm_ext_error *err)
{
    const uint32_t *index = of;
    return x->ops.get_property ? x->ops.get_property(x->plugin, *index, key, out, err)
                               : XM_EXT_NOT_FOUND;
}

static struct external_plugin *
self(struct xm_plugin *p)
{
    return (struct external_plugin *)p;
}

static uint32_t
plugin_count(struct xm_plugin *p)
{
    const struct xm_external *x = self(p)->shared;
    return x->ops.count ? x->ops.count(x->plugin) : 1;
}

static enum xm_status
plugin_get_property(struct xm_plugin *p, uint32_t index, const char *key,
                    struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_strbuf devices = {0};
    for (uint32_t i = 0; i < plugin_count(p); i++)
        xm_strbuf_printf(&devices, "%s%u", i ? " " : "", i);
    const struct xm_external_row rows[] = {
        {"AVAILABLE_DEVICES", xm_strbuf_text(&devices)},
        {"FULL_DEVICE_NAME", p->ops->description},
        {"DEVICE_TYPE", "integrated"},
    };
    const struct xm_external_question q = {ask_device, &index};
    enum xm_status s = xm_external_property(self(p)->shared, &q, rows, XM_ARRAY_LEN(rows),
                                            key, out, err);
    xm_strbuf_free(&devices);
    return s;
}

static enum xm_status
plugin_set_property(struct xm_plugin *p, const char *key, const char *value,
                    struct xm_error *err)
{
    const struct xm_external *x = self(p)->shared;
    xm_ext_error why = {""};
    const int32_t status = x->ops.set_property
                               ? x->ops.set_property(x->plugin, key, value, &why)
                               : XM_EXT_NOT_FOUND;
    if (status == XM_EXT_NOT_FOUND && !why.text[0])
        return xm_fail(err, XM_NOT_FOUND, "Unsupported property %s by %s plugin", key,
                       x->name);
    return xm_external_status(x, "set_property", status, &why, err);
}

/* ---- compiling --------------------------------------------------------------------- */

/* Whether a property is passed to the plugin. Programs give XM_ and CACHE_ properties to all
 * devices; only plugins that list them get them. */
static bool
is_for_plugin(const struct xm_property *p, const char *supported)
{
    const bool is_ours =
        strncmp(p->key, "XM_", 3) == 0 || strncmp(p->key, "CACHE_", 6) == 0;
    return !is_ours || xm_list_has(supported, ' ', p->key, strlen(p->key));
}

/* Chooses the properties for the plugin; the caller frees *out with xm_free(). */
static enum xm_status
choose_properties(struct xm_plugin *p, uint32_t index,
                  const struct xm_property *properties, uint32_t n,
                  struct xm_property **out, uint32_t *n_out, struct xm_error *err)
{
    struct xm_strbuf supported = {0};
    *n_out = 0;
    *out = xm_calloc(n + 1u, sizeof(**out));
    if (!*out)
        return xm_no_memory(err, "the properties of a model");
    plugin_get_property(p, index, "SUPPORTED_PROPERTIES", &supported, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (is_for_plugin(&properties[i], xm_strbuf_text(&supported)))
            (*out)[(*n_out)++] = properties[i];
    }
    xm_strbuf_free(&supported);
    return XM_OK;
}

/* Owns `g` from now on, also on failure. */
static enum xm_status
compile(struct xm_plugin *p, struct xm_graph *g, struct xm_external_compile *how,
        struct xm_compiled **out, struct xm_error *err)
{
    xm_ext_model *model = NULL;
    struct xm_property *chosen = NULL;
    XM_TRY(xm_external_model_create(g, &model, err));
    enum xm_status s =
        choose_properties(p, how->index, how->properties, how->n_properties, &chosen,
                          &how->n_properties, err);
    how->properties = chosen;
    if (s == XM_OK)
        s = xm_external_compile(self(p)->shared, how, model, out, err);
    else
        xm_external_model_release(model);
    xm_free(chosen);
    return s;
}

static enum xm_status
plugin_compile(struct xm_plugin *p, uint32_t index, struct xm_graph *g,
               const struct xm_property *properties, uint32_t n_properties,
               const struct xm_compile_options *options, struct xm_compiled **out,
               struct xm_error *err)
{
    struct xm_external_compile how = {index, NULL, properties, n_properties};
    if (options && options->sampled_logits)
        xm_pass_slice_last_token(g);
    return compile(p, g, &how, out, err);
}

static enum xm_status
plugin_compile_in(struct xm_plugin *p, struct xm_context *c, struct xm_graph *g,
                  const struct xm_property *properties, uint32_t n_properties,
                  struct xm_compiled **out, struct xm_error *err)
{
    const struct xm_external_context *mine = (const struct xm_external_context *)c;
    struct xm_external_compile how = {mine->index, c, properties, n_properties};
    if (mine->shared != self(p)->shared) {
        xm_graph_destroy(g);
        return xm_fail(err, XM_INVALID,
                       "the remote context belongs to device %s of another core: create "
                       "a context of this core",
                       p->ops->name);
    }
    return compile(p, g, &how, out, err);
}

static enum xm_status
plugin_create_context(struct xm_plugin *p, uint32_t index,
                      const struct xm_context_wish *wish, struct xm_context **out,
                      struct xm_error *err)
{
    return xm_external_create_context(self(p)->shared, index, wish, out, err);
}

static enum xm_status
plugin_import(struct xm_plugin *p, uint32_t index, const struct xm_import *from,
              const struct xm_property *properties, uint32_t n_properties,
              struct xm_compiled **out, struct xm_error *err)
{
    struct xm_property *chosen = NULL;
    uint32_t n = 0;
    enum xm_status s =
        choose_properties(p, index, properties, n_properties, &chosen, &n, err);
    if (s == XM_OK)
        s = xm_external_import(self(p)->shared, index, from, chosen, n, out, err);
    xm_free(chosen);
    return s;
}

/* Arguments of the core's callback, which identifies nodes by name. */
struct query {
    const xm_ext_model *model;
    void (*supported)(const char *node, void *ctx);
    void *ctx;
};

static void
on_supported(void *ctx, uint32_t node)
{
    const struct query *q = ctx;
    if (node < q->model->n)
        q->supported(q->model->views[node].name, q->ctx);
}

/* The caller keeps the graph: the plugin sees a copy, which is destroyed before this returns. */
static enum xm_status
plugin_query_model(struct xm_plugin *p, uint32_t index, struct xm_graph *g,
                   void (*supported)(const char *node, void *ctx), void *ctx,
                   struct xm_error *err)
{
    const struct xm_external *x = self(p)->shared;
    struct xm_graph *copy = NULL;
    xm_ext_model *model = NULL;
    xm_ext_error why = {""};
    if (!x->ops.query_model)
        return xm_fail(err, XM_UNSUPPORTED,
                       "plugin %s does not report which operations it supports", x->name);
    XM_TRY(xm_graph_clone(g, NULL, &copy, err));
    XM_TRY(xm_external_model_create(copy, &model, err));
    struct query q = {model, supported, ctx};
    const int32_t status =
        x->ops.query_model(x->plugin, index, model, on_supported, &q, &why);
    xm_external_model_release(model);
    return xm_external_status(x, "query_model", status, &why, err);
}

/* ---- life -------------------------------------------------------------------------- */

static void
plugin_destroy(struct xm_plugin *p)
{
    xm_external_unref(self(p)->shared);
    xm_free(p);
}

static const struct xm_plugin_ops plugin_ops = {
    .count = plugin_count,
    .get_property = plugin_get_property,
    .set_property = plugin_set_property,
    .compile = plugin_compile,
    .import_model = plugin_import,
    .query_model = plugin_query_model,
    .create_context = plugin_create_context,
    .compile_in = plugin_compile_in,
    .destroy = plugin_destroy,
};

const char *
xm_external_refuse_name(const char *name)
{
    if (!name[0])
        return "it is empty";
    if (strlen(name) > MAX_NAME)
        return "it is longer than 63 characters";
    return name[strcspn(name, ".,:() \t\n")]
               ? "it has a dot, a comma, a colon, a bracket or a "
                 "space"
               : NULL;
}

/* Calls the plugin's entry function. After a failure nothing of the plugin has to be destroyed. */
static enum xm_status
enter(struct xm_external *x, xm_ext_entry_fn entry, struct xm_error *err)
{
    xm_ext_error why = {""};
    const xm_ext_ops *ops = NULL;
    void *plugin = NULL;
    const int32_t status = entry(XM_EXT_VERSION, xm_external_host(), &ops, &plugin, &why);
    if (status != XM_EXT_OK && (!ops || ops->version == XM_EXT_VERSION))
        return xm_external_status(x, XM_EXT_ENTRY, status, &why, err);
    enum xm_status s = take_table(x, ops, err);
    x->plugin = plugin;
    return s;
}

static enum xm_status
wrap(struct xm_external *x, struct xm_plugin **out, struct xm_error *err)
{
    struct external_plugin *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return xm_no_memory(err, "a plugin");
    p->ops = plugin_ops;
    p->ops.name = x->name;
    p->ops.description = x->ops.description ? x->ops.description : x->name;
    if (!x->ops.import_model)
        p->ops.import_model = NULL;
    if (!x->ops.create_context) {
        p->ops.create_context = NULL;
        p->ops.compile_in = NULL;
    }
    p->base.ops = &p->ops;
    p->shared = x;
    *out = &p->base;
    return XM_OK;
}

enum xm_status
xm_external_create(const char *name, xm_ext_entry_fn entry, struct xm_library *library,
                   struct xm_plugin **out, struct xm_error *err)
{
    struct xm_external *x = xm_calloc(1, sizeof(*x));
    char *copy = xm_strdup(name);
    if (!x || !copy) {
        xm_library_close(library);
        xm_free(x);
        xm_free(copy);
        return xm_no_memory(err, "a plugin");
    }
    *x = (struct xm_external){.refs = 1, .library = library, .name = copy};
    enum xm_status s = enter(x, entry, err);
    if (s == XM_OK)
        s = wrap(x, out, err);
    if (s != XM_OK)
        xm_external_unref(x);
    return s;
}

enum xm_status
xm_external_load(const char *name, const char *path, struct xm_plugin **out,
                 struct xm_error *err)
{
    struct xm_library *library = NULL;
    enum xm_status s = xm_library_open(path, &library, err);
    if (s == XM_OK)
        s = xm_external_create(name, xm_library_entry(library), library, out, err);
    if (s != XM_OK)
        xm_error_prefix(err, "device %s, library '%.150s'", name, path);
    return s;
}
