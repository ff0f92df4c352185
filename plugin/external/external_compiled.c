/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled models of external plugins.
 */
#include <string.h>

#include "plugin/exec_graph.h"
#include "plugin/external/external.h"

/* Bounds of an imported model's ports, and of the names of one port, in case the plugin never ends
 * a list. */
enum { MOST_PORTS = 4096, MOST_NAMES = 4096 };

static struct xm_external_compiled *
self(struct xm_compiled *c)
{
    return (struct xm_external_compiled *)c;
}

/* ---- properties and texts ---------------------------------------------------------- */

static int32_t
ask(const struct xm_external *x, const void *of, const char *key, const xm_ext_sink *out,
    xm_ext_error *err)
{
    const struct xm_external_compiled *c = of;
    return x->ops.compiled_property ? x->ops.compiled_property(c->compiled, key, out, err)
                                    : XM_EXT_NOT_FOUND;
}

static enum xm_status
get_property(struct xm_compiled *base, const char *key, struct xm_strbuf *out,
             struct xm_error *err)
{
    const struct xm_external_compiled *c = self(base);
    struct xm_strbuf device = {0};
    xm_external_print_name(c->shared, c->index, &device);
    const char *name = c->model ? c->model->graph->name : NULL;
    const struct xm_external_row rows[] = {
        {"EXECUTION_DEVICES", xm_strbuf_text(&device)},
        {"NETWORK_NAME", name ? name : ""},
        {"LOADED_FROM_CACHE", c->model ? "NO" : "YES"},
        {"OPTIMAL_NUMBER_OF_INFER_REQUESTS", "1"},
    };
    const struct xm_external_question q = {ask, c};
    enum xm_status s =
        xm_external_property(c->shared, &q, rows, XM_ARRAY_LEN(rows), key, out, err);
    xm_strbuf_free(&device);
    return s;
}

static void
print(struct xm_compiled *base, struct xm_strbuf *out)
{
    const xm_ext_model *m = self(base)->model;
    for (uint32_t i = 0; m && i < m->n; i++)
        xm_strbuf_printf(out, "%%%u %s  # \"%s\"\n", i, m->views[i].op, m->views[i].name);
}

/* Makes the graph of the model's nodes, because a plugin does not report its steps. */
static enum xm_status
exec_graph(struct xm_compiled *base, struct xm_exec_graph *out, struct xm_error *err)
{
    const struct xm_external_compiled *c = self(base);
    *out = (struct xm_exec_graph){.nodes = NULL};
    if (!c->model)
        return xm_fail(err, XM_UNSUPPORTED,
                       "plugin %s does not offer a runtime model of an imported model",
                       c->shared->name);
    return xm_exec_graph_from(c->model->graph, c->shared->name, out, err);
}

static enum xm_status
get_context(struct xm_compiled *base, struct xm_context **out, struct xm_error *err)
{
    const struct xm_external_compiled *c = self(base);
    if (!c->context)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the model was not compiled in a remote context");
    xm_context_ref(c->context);
    *out = c->context;
    return XM_OK;
}

/* ---- exporting --------------------------------------------------------------------- */

struct export_sink {
    const struct xm_export *to;
    struct xm_error *err;
    enum xm_status status; /* the first failure of a write */
};

static void
write_piece(void *ctx, const void *bytes, uint64_t n)
{
    struct export_sink *s = ctx;
    if (s->status == XM_OK)
        s->status = s->to->write(s->to->ctx, bytes, n, s->err);
}

static enum xm_status
export_model(struct xm_compiled *base, const struct xm_export *to, struct xm_error *err)
{
    const struct xm_external_compiled *c = self(base);
    xm_ext_error why = {""};
    struct export_sink s = {to, err, XM_OK};
    const xm_ext_sink sink = {write_piece, &s};
    if (!c->shared->ops.export_model)
        return xm_fail(err, XM_UNSUPPORTED, "plugin %s cannot export compiled models",
                       c->shared->name);
    const int32_t status = c->shared->ops.export_model(c->compiled, &sink, &why);
    return s.status != XM_OK
               ? s.status
               : xm_external_status(c->shared, "export_model", status, &why, err);
}

/* ---- life -------------------------------------------------------------------------- */

static void
destroy(struct xm_compiled *base)
{
    struct xm_external_compiled *c = self(base);
    if (c->compiled)
        c->shared->ops.destroy_compiled(c->compiled);
    xm_external_model_release(c->model);
    xm_mapping_unref(c->blob);
    xm_arena_free(&c->arena);
    xm_dim_pool_free(&c->dims);
    xm_context_unref(c->context);
    xm_external_unref(c->shared);
    xm_free(c);
}

static const struct xm_compiled_ops compiled_ops = {
    .create_request = xm_external_create_request,
    .get_property = get_property,
    .export_model = export_model,
    .print = print,
    .destroy = destroy,
    .exec_graph = exec_graph,
    .get_context = get_context,
};

static struct xm_external_compiled *
create(struct xm_external *shared, uint32_t index, struct xm_error *err)
{
    struct xm_external_compiled *c = xm_calloc(1, sizeof(*c));
    if (!c) {
        xm_no_memory(err, "a compiled model");
        return NULL;
    }
    c->base.ops = &compiled_ops;
    c->base.refs = 1;
    c->shared = shared;
    c->index = index;
    xm_external_ref(shared);
    return c;
}

/* Checks the outcome of the plugin's compile or import_model. */
static enum xm_status
check_made(const struct xm_external_compiled *c, const char *function, int32_t status,
           xm_ext_error *why, struct xm_error *err)
{
    XM_TRY(xm_external_status(c->shared, function, status, why, err));
    return c->compiled
               ? XM_OK
               : xm_fail(err, XM_DEVICE, "plugin %s: %s returned no compiled model",
                         c->shared->name, function);
}

/* Calls the plugin's compile or compile_in. */
static int32_t
call_compile(const struct xm_external_compiled *c, const struct xm_external_compile *how,
             void **compiled, xm_ext_error *why)
{
    const struct xm_external *x = c->shared;
    const xm_ext_property *properties = (const xm_ext_property *)how->properties;
    return c->context
               ? x->ops.compile_in(x->plugin,
                                   ((struct xm_external_context *)c->context)->context,
                                   c->model, properties, how->n_properties, compiled, why)
               : x->ops.compile(x->plugin, c->index, c->model, properties,
                                how->n_properties, compiled, why);
}

enum xm_status
xm_external_compile(struct xm_external *shared, const struct xm_external_compile *how,
                    xm_ext_model *model, struct xm_compiled **out, struct xm_error *err)
{
    xm_ext_error why = {""};
    struct xm_external_compiled *c = create(shared, how->index, err);
    if (!c) {
        xm_external_model_release(model);
        return XM_NO_MEMORY;
    }
    void *compiled = NULL;
    c->model = model;
    c->base.ports = model->ports;
    c->context = how->context;
    if (c->context)
        xm_context_ref(c->context);
    const int32_t status = call_compile(c, how, &compiled, &why);
    if (status == XM_EXT_OK)
        c->compiled = compiled;
    enum xm_status s = check_made(c, "compile", status, &why, err);
    if (s == XM_OK)
        *out = &c->base;
    else
        destroy(&c->base);
    return s;
}

/* ---- importing --------------------------------------------------------------------- */

static enum xm_status
take_type(struct xm_external_compiled *c, const xm_ext_port *from, struct xm_port *to,
          struct xm_error *err)
{
    const xm_ext_type *t = &from->type;
    if (t->element == XM_EXT_DYNAMIC || t->element >= XM_ELEMENT_COUNT ||
        t->rank > XM_EXT_RANK)
        return xm_fail(err, XM_INVALID,
                       "plugin %s: port '%.80s' of an imported model has element type %u "
                       "and rank %u",
                       c->shared->name, from->name, t->element, t->rank);
    to->type.element = (enum xm_element)t->element;
    to->type.shape.rank = t->rank;
    for (uint32_t i = 0; i < t->rank; i++) {
        const struct xm_bound b = {t->min[i], t->max[i] < 0 ? -1 : t->max[i]};
        if (b.min < 0 || (b.max >= 0 && b.max < b.min))
            return xm_fail(err, XM_INVALID,
                           "plugin %s: dimension %u of port '%.80s' is from %lld to %lld",
                           c->shared->name, i, from->name, (long long)b.min,
                           (long long)b.max);
        to->bound[i] = b;
        to->type.shape.dim[i] =
            xm_bound_is_fixed(b) ? xm_dim_const(b.min) : xm_dim_fresh(&c->dims);
    }
    return c->dims.failed ? xm_no_memory(err, "the ports of a model") : XM_OK;
}

static enum xm_status
take_port(struct xm_external_compiled *c, const xm_ext_port *from, struct xm_port *to,
          struct xm_error *err)
{
    if (!from->name || (from->n_names && !from->names))
        return xm_fail(err, XM_INVALID,
                       "plugin %s: an input or output of an imported model has no name",
                       c->shared->name);
    if (from->n_names > MOST_NAMES)
        return xm_fail(err, XM_INVALID,
                       "plugin %s: port '%.80s' of an imported model has %u names, at "
                       "most %d are supported",
                       c->shared->name, from->name, from->n_names, MOST_NAMES);
    const char **names = xm_arena_alloc(&c->arena, (from->n_names + 1u) * sizeof(*names));
    to->name = xm_arena_strdup(&c->arena, from->name);
    if (!names || !to->name)
        return xm_no_memory(err, "the ports of a model");
    for (uint32_t i = 0; i < from->n_names; i++) {
        names[i] = xm_arena_strdup(&c->arena, from->names[i] ? from->names[i] : "");
        if (!names[i])
            return xm_no_memory(err, "the ports of a model");
    }
    to->names = names;
    to->n_names = from->n_names;
    return take_type(c, from, to, err);
}

/* Gets port `i`. *is_last: there is no such port, and *to is unchanged. */
static enum xm_status
ask_port(struct xm_external_compiled *c, bool is_output, uint32_t i, bool *is_last,
         struct xm_port *to, struct xm_error *err)
{
    xm_ext_port port = {.node = XM_EXT_NONE};
    xm_ext_error why = {""};
    const int32_t status =
        c->shared->ops.compiled_port(c->compiled, is_output, i, &port, &why);
    *is_last = status == XM_EXT_NOT_FOUND;
    if (*is_last)
        return XM_OK;
    XM_TRY(xm_external_status(c->shared, "compiled_port", status, &why, err));
    if (i == MOST_PORTS)
        return xm_fail(err, XM_INVALID,
                       "plugin %s: an imported model has more than %d inputs and outputs",
                       c->shared->name, MOST_PORTS);
    return take_port(c, &port, to, err);
}

static enum xm_status
take_ports(struct xm_external_compiled *c, bool is_output, struct xm_port **list,
           uint32_t *n, struct xm_error *err)
{
    bool is_last = false;
    uint32_t room = 0;
    for (*n = 0;; (*n)++) {
        if (*n == room) {
            const uint32_t more = room ? 2 * room : 8;
            struct xm_port *grown =
                xm_arena_alloc(&c->arena, (more + 1) * sizeof(*grown));
            if (!grown)
                return xm_no_memory(err, "the ports of a model");
            if (room)
                memcpy(grown, *list, room * sizeof(*grown));
            *list = grown;
            room = more;
        }
        XM_TRY(ask_port(c, is_output, *n, &is_last, &(*list)[*n], err));
        if (is_last)
            return XM_OK;
    }
}

static enum xm_status
import(struct xm_external_compiled *c, const struct xm_import *from,
       const struct xm_property *properties, uint32_t n, struct xm_error *err)
{
    const struct xm_external *x = c->shared;
    struct xm_ports *p = &c->base.ports;
    xm_ext_error why = {""};
    void *compiled = NULL;
    const int32_t status =
        x->ops.import_model(x->plugin, c->index, from->bytes, from->n_bytes,
                            (const xm_ext_property *)properties, n, &compiled, &why);
    if (status == XM_EXT_OK)
        c->compiled = compiled;
    XM_TRY(check_made(c, "import_model", status, &why, err));
    XM_TRY(take_ports(c, false, &p->inputs, &p->n_inputs, err));
    return take_ports(c, true, &p->outputs, &p->n_outputs, err);
}

enum xm_status
xm_external_import(struct xm_external *shared, uint32_t index,
                   const struct xm_import *from, const struct xm_property *properties,
                   uint32_t n, struct xm_compiled **out, struct xm_error *err)
{
    struct xm_external_compiled *c = create(shared, index, err);
    if (!c)
        return XM_NO_MEMORY;
    if (from->owner)
        xm_mapping_ref(from->owner);
    c->blob = from->owner;
    enum xm_status s = import(c, from, properties, n, err);
    if (s == XM_OK)
        *out = &c->base;
    else
        destroy(&c->base);
    return s;
}
