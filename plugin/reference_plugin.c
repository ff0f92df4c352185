/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin REFERENCE: the host reference of every operation, as a device.
 *
 * It is slow and exact (f32): other devices are compared with it. It runs the passes like any
 * device, so that XM_SKIP and XM_STOP apply, and evaluates the resulting graph.
 */
#include <pthread.h>
#include <string.h>

#include "plugin/bind.h"
#include "plugin/plugin.h"
#include "transformations/graph/evaluate.h"
#include "transformations/graph/symbols.h"
#include "transformations/passes/slice_last_token.h"
#include "transformations/pipeline.h"

struct reference_plugin {
    struct xm_plugin base;
    pthread_mutex_t lock;    /* protects config */
    struct xm_config config; /* the options that set_property stored */
};

struct reference_compiled {
    struct xm_compiled base;
    struct xm_graph *graph;
    struct xm_pass_report *reports;
    struct xm_config *config; /* owned; the requested options, for get_property */
    bool has_states;
};

struct reference_infer {
    struct xm_infer base;
    struct reference_compiled *owner; /* borrowed; base.compiled holds a reference */
    struct xm_tensor **inputs;
    struct xm_host_tensor *outputs; /* owns their bytes */
    struct xm_state_store *states;
    uint64_t past;
    bool cancelled;
};

/* ---- requests ---- */

static enum xm_status
infer_set_input(struct xm_infer *base, uint32_t input, const struct xm_host_tensor *t,
                struct xm_error *err)
{
    struct reference_infer *r = (struct reference_infer *)base;
    struct xm_tensor *copy = NULL;
    if (input >= r->owner->base.ports.n_inputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no input %u", input);
    XM_TRY(xm_port_check(&r->owner->base.ports.inputs[input], t, err));
    XM_TRY(xm_port_check_rows(&r->owner->base.ports.inputs[input], t, err));
    XM_TRY(xm_tensor_from_bytes(&copy, t->element, t->rank, t->dim, t->data, err));
    xm_tensor_destroy(r->inputs[input]);
    r->inputs[input] = copy;
    return XM_OK;
}

static enum xm_status
stop_when_cancelled(const struct xm_node *n, const struct xm_tensor *const *in,
                    struct xm_tensor *const *out, void *ctx)
{
    const struct reference_infer *r = ctx;
    (void)n;
    (void)in;
    (void)out;
    return xm_flag_get(&r->cancelled) ? XM_CANCELLED : XM_OK;
}

static enum xm_status
keep_output(struct xm_host_tensor *out, const struct xm_tensor *t, struct xm_error *err)
{
    uint64_t bytes = 0;
    if (!xm_element_bytes(t->element, t->n, &bytes))
        return xm_fail(err, XM_INVALID, "an output without a size");
    void *data = xm_realloc(out->data, (size_t)(bytes ? bytes : 1));
    if (!data)
        return xm_no_memory(err, "an output");
    *out = (struct xm_host_tensor){
        .element = t->element, .rank = t->rank, .data = data, .bytes = bytes};
    memcpy(out->dim, t->dim, sizeof(out->dim));
    xm_tensor_to_bytes(t, data);
    return XM_OK;
}

/* Returns the number of positions that this run adds: the value of the symbol `tokens` in the
 * shapes of the inputs. */
static int64_t
tokens_of(const struct reference_infer *r)
{
    const struct xm_compiled *c = &r->owner->base;
    for (uint32_t i = 0; i < c->ports.n_inputs; i++) {
        const struct xm_shape *s = &c->ports.inputs[i].type.shape;
        for (uint32_t d = 0; d < s->rank; d++) {
            if (xm_dim_symbols(s->dim[d]) == 1 &&
                strcmp(xm_dim_symbol_name(s->dim[d], 0), XM_SYMBOL_TOKENS) == 0)
                return r->inputs[i]->dim[d];
        }
    }
    return 0;
}

static enum xm_status
evaluate(struct reference_infer *r, const char **names, struct xm_tensor **results,
         struct xm_error *err)
{
    const struct xm_compiled *c = &r->owner->base;
    struct xm_binding past = {XM_SYMBOL_PAST, (int64_t)r->past};
    for (uint32_t i = 0; i < c->ports.n_inputs; i++) {
        if (!r->inputs[i])
            return xm_fail(err, XM_INVALID, "input '%s' has not been set",
                           c->ports.inputs[i].name);
        names[i] = c->ports.inputs[i].name;
    }
    struct xm_eval e = {.graph = r->owner->graph,
                        .input_names = names,
                        .inputs = (const struct xm_tensor *const *)r->inputs,
                        .n_inputs = c->ports.n_inputs,
                        .states = r->states,
                        .bindings = &past,
                        .n_bindings = r->owner->has_states,
                        .hook = stop_when_cancelled,
                        .hook_ctx = r};
    return xm_evaluate(&e, results, c->ports.n_outputs, err);
}

static enum xm_status
infer_run(struct xm_infer *base, struct xm_error *err)
{
    struct reference_infer *r = (struct reference_infer *)base;
    uint32_t n = r->owner->base.ports.n_outputs;
    struct xm_tensor **results = xm_calloc(n + 1, sizeof(struct xm_tensor *));
    const char **names = xm_calloc(r->owner->base.ports.n_inputs + 1, sizeof(*names));
    enum xm_status s = results && names ? evaluate(r, names, results, err)
                                        : xm_no_memory(err, "the results");
    if (s == XM_CANCELLED)
        xm_fail(err, s, "cancelled between two operations");
    for (uint32_t i = 0; i < n && s == XM_OK; i++)
        s = keep_output(&r->outputs[i], results[i], err);
    if (s == XM_OK && r->owner->has_states)
        r->past += (uint64_t)tokens_of(r);
    for (uint32_t i = 0; results && i < n; i++)
        xm_tensor_destroy(results[i]);
    xm_free(results);
    xm_free(names);
    return s;
}

static enum xm_status
infer_output(struct xm_infer *base, uint32_t output, struct xm_host_tensor *t,
             struct xm_error *err)
{
    struct reference_infer *r = (struct reference_infer *)base;
    if (output >= r->owner->base.ports.n_outputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no output %u", output);
    if (!r->outputs[output].data)
        return xm_fail(err, XM_INVALID,
                       "output '%s' has no value before a successful run",
                       r->owner->base.ports.outputs[output].name);
    *t = r->outputs[output];
    return XM_OK;
}

static void
infer_reset(struct xm_infer *base)
{
    struct reference_infer *r = (struct reference_infer *)base;
    xm_state_store_reset(r->states);
    r->past = 0;
}

static uint64_t
infer_past(const struct xm_infer *base)
{
    return ((const struct reference_infer *)base)->past;
}

static void
infer_cancel(struct xm_infer *base)
{
    xm_flag_set(&((struct reference_infer *)base)->cancelled, true);
}

static void
infer_resume(struct xm_infer *base)
{
    xm_flag_set(&((struct reference_infer *)base)->cancelled, false);
}

static void
infer_destroy(struct xm_infer *base)
{
    struct reference_infer *r = (struct reference_infer *)base;
    for (uint32_t i = 0; r->inputs && i < r->owner->base.ports.n_inputs; i++)
        xm_tensor_destroy(r->inputs[i]);
    for (uint32_t i = 0; r->outputs && i < r->owner->base.ports.n_outputs; i++)
        xm_free(r->outputs[i].data);
    xm_state_store_destroy(r->states);
    xm_free(r->inputs);
    xm_free(r->outputs);
    xm_free(r);
}

static const struct xm_infer_ops infer_ops = {
    .set_input = infer_set_input,
    .infer = infer_run,
    .output = infer_output,
    .reset = infer_reset,
    .past = infer_past,
    .cancel = infer_cancel,
    .resume = infer_resume,
    .destroy = infer_destroy,
};

/* ---- compiled models ---- */

static enum xm_status
compiled_create_request(struct xm_compiled *c, struct xm_infer **out,
                        struct xm_error *err)
{
    struct reference_infer *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_no_memory(err, "a request");
    r->base.ops = &infer_ops;
    r->owner = (struct reference_compiled *)c;
    r->inputs = xm_calloc(c->ports.n_inputs + 1, sizeof(struct xm_tensor *));
    r->outputs = xm_calloc(c->ports.n_outputs + 1, sizeof(*r->outputs));
    r->states = xm_state_store_create();
    if (!r->inputs || !r->outputs || !r->states) {
        infer_destroy(&r->base);
        return xm_no_memory(err, "a request");
    }
    *out = &r->base;
    return XM_OK;
}

static enum xm_status
unsupported(const char *key, struct xm_error *err)
{
    return xm_fail(err, XM_NOT_FOUND, "Unsupported property %s by REFERENCE plugin", key);
}

/* Sets an option of the config. A property that the config lacks gets an error of this plugin;
 * other errors of the config are returned as they are. */
static enum xm_status
set_option(struct xm_config *c, const char *key, const char *value, struct xm_error *err)
{
    struct xm_error why = {0};
    const enum xm_status s = xm_config_set(c, key, value, &why);
    if (s == XM_NOT_FOUND)
        return unsupported(key, err);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}

/* Appends the value of `key`: from the rows of keys and values, or else of a config option,
 * although options have no effect on this device. */
static enum xm_status
find_property(const char *const (*rows)[2], size_t n, const struct xm_config *c,
              const char *key, struct xm_strbuf *out, struct xm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i][0], key) == 0) {
            xm_strbuf_add(out, rows[i][1]);
            return XM_OK;
        }
    }
    const enum xm_status s = xm_config_get(c, key, out, NULL);
    return s == XM_NOT_FOUND ? unsupported(key, err)
           : s == XM_OK      ? XM_OK
                             : xm_fail(err, s, "out of memory for the value of %s", key);
}

static enum xm_status
compiled_get_property(struct xm_compiled *c, const char *key, struct xm_strbuf *out,
                      struct xm_error *err)
{
    const struct reference_compiled *own = (const struct reference_compiled *)c;
    const char *name = own->graph->name;
    const char *const properties[][2] = {
        {"EXECUTION_DEVICES", "REFERENCE"},
        {"NETWORK_NAME", name ? name : ""},
        {"LOADED_FROM_CACHE", "NO"},
        {"OPTIMAL_NUMBER_OF_INFER_REQUESTS", "1"},
        {"INFERENCE_PRECISION_HINT", "f32"},
        {"SUPPORTED_PROPERTIES",
         "SUPPORTED_PROPERTIES EXECUTION_DEVICES NETWORK_NAME LOADED_FROM_CACHE "
         "OPTIMAL_NUMBER_OF_INFER_REQUESTS INFERENCE_PRECISION_HINT"},
    };
    return find_property(properties, XM_ARRAY_LEN(properties), own->config, key, out,
                         err);
}

static void
compiled_print(struct xm_compiled *base, struct xm_strbuf *out)
{
    struct reference_compiled *c = (struct reference_compiled *)base;
    xm_for_each_node(n, c->graph)
    {
        xm_strbuf_printf(out, "%%%u %s  # \"%s\"\n", n->id, xm_op_info(n->op)->text,
                         n->name);
    }
}

static enum xm_status
compiled_exec_graph(struct xm_compiled *c, struct xm_exec_graph *out,
                    struct xm_error *err)
{
    return xm_exec_graph_from(((struct reference_compiled *)c)->graph, "host_reference",
                              out, err);
}

static void
compiled_destroy(struct xm_compiled *base)
{
    struct reference_compiled *c = (struct reference_compiled *)base;
    xm_graph_destroy(c->graph);
    xm_free(c->reports);
    xm_free(c->config);
    xm_free(c);
}

static const struct xm_compiled_ops compiled_ops = {
    .create_request = compiled_create_request,
    .get_property = compiled_get_property,
    .print = compiled_print,
    .exec_graph = compiled_exec_graph,
    .destroy = compiled_destroy,
};

/* ---- the plugin ---- */

static uint32_t
plugin_count(struct xm_plugin *p)
{
    (void)p;
    return 1;
}

static enum xm_status
plugin_get_property(struct xm_plugin *base, uint32_t index, const char *key,
                    struct xm_strbuf *out, struct xm_error *err)
{
    struct reference_plugin *p = (struct reference_plugin *)base;
    const char *const properties[][2] = {
        {"FULL_DEVICE_NAME", "host reference"},
        {"DEVICE_TYPE", "integrated"},
        {"AVAILABLE_DEVICES", "0"},
        {"SUPPORTED_PROPERTIES",
         "SUPPORTED_PROPERTIES AVAILABLE_DEVICES FULL_DEVICE_NAME DEVICE_TYPE"},
    };
    (void)index;
    pthread_mutex_lock(&p->lock);
    const enum xm_status s =
        find_property(properties, XM_ARRAY_LEN(properties), &p->config, key, out, err);
    pthread_mutex_unlock(&p->lock);
    return s;
}

/* Stores a property. Only those of the passes change anything, because everything is computed in
 * f32 without tiling. */
static enum xm_status
plugin_set_property(struct xm_plugin *base, const char *key, const char *value,
                    struct xm_error *err)
{
    struct reference_plugin *p = (struct reference_plugin *)base;
    pthread_mutex_lock(&p->lock);
    enum xm_status s = set_option(&p->config, key, value, err);
    pthread_mutex_unlock(&p->lock);
    return s;
}

/* Makes a copy of the plugin's config with `properties` set. */
static enum xm_status
find_config(struct reference_plugin *p, const struct xm_property *properties,
            uint32_t n_properties, struct xm_config **out, struct xm_error *err)
{
    enum xm_status s = XM_OK;
    struct xm_config *config = *out = xm_malloc(sizeof(*config));
    if (!config)
        return xm_no_memory(err, "a config");
    pthread_mutex_lock(&p->lock);
    *config = p->config;
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < n_properties && s == XM_OK; i++)
        s = set_option(config, properties[i].key, properties[i].value, err);
    return s;
}

static enum xm_status
prepare(struct reference_compiled *c, const struct xm_compile_options *options,
        struct xm_error *err)
{
    const struct xm_caps caps = {.precision = XM_DYNAMIC,
                                 .rounds_as_trained = c->config->rounds_as_trained};
    if (options && options->sampled_logits)
        xm_pass_slice_last_token(c->graph);
    if (c->graph->err.status != XM_OK)
        return xm_fail(err, c->graph->err.status, "%s", c->graph->err.text);
    xm_passes(&c->base.n_reports);
    c->reports = xm_calloc(c->base.n_reports, sizeof(*c->reports));
    if (!c->reports)
        return xm_no_memory(err, "the passes' reports");
    c->base.reports = c->reports;
    XM_TRY(xm_pipeline_run(c->graph, &caps, NULL, c->reports, &c->base.n_reports, err));
    if (options && options->replace)
        XM_TRY(options->replace(options->replace_ctx, &c->graph, err));
    c->base.n_rounded = c->graph->n_rounded;
    xm_for_each_node(n, c->graph) c->has_states |=
        xm_op_info(n->op)->flags & XM_OPF_STATE;
    return xm_ports_from_graph(c->graph, &c->graph->arena, &c->graph->dims,
                               &c->base.ports, err);
}

static enum xm_status
plugin_compile(struct xm_plugin *p, uint32_t index, struct xm_graph *g,
               const struct xm_property *properties, uint32_t n_properties,
               const struct xm_compile_options *options, struct xm_compiled **out,
               struct xm_error *err)
{
    (void)index;
    struct reference_compiled *c = xm_calloc(1, sizeof(*c));
    if (!c) {
        xm_graph_destroy(g);
        return xm_no_memory(err, "a compiled model");
    }
    c->graph = g;
    c->base.ops = &compiled_ops;
    c->base.refs = 1;
    enum xm_status s = find_config((struct reference_plugin *)p, properties, n_properties,
                                   &c->config, err);
    if (s == XM_OK)
        s = prepare(c, options, err);
    if (s != XM_OK) {
        compiled_destroy(&c->base);
        return s;
    }
    *out = &c->base;
    return XM_OK;
}

static enum xm_status
plugin_query_model(struct xm_plugin *p, uint32_t index, struct xm_graph *g,
                   void (*supported)(const char *node, void *ctx), void *ctx,
                   struct xm_error *err)
{
    (void)p;
    (void)index;
    (void)err;
    xm_for_each_node(n, g) supported(n->name, ctx);
    return XM_OK;
}

static void
plugin_destroy(struct xm_plugin *p)
{
    pthread_mutex_destroy(&((struct reference_plugin *)p)->lock);
    xm_free(p);
}

static const struct xm_plugin_ops plugin_ops = {
    .name = "REFERENCE",
    .description = "xemoe host reference",
    .count = plugin_count,
    .get_property = plugin_get_property,
    .set_property = plugin_set_property,
    .compile = plugin_compile,
    .query_model = plugin_query_model,
    .destroy = plugin_destroy,
};

enum xm_status
xm_reference_plugin_create(struct xm_plugin **out, struct xm_error *err)
{
    struct reference_plugin *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return xm_no_memory(err, "the REFERENCE plugin");
    p->base.ops = &plugin_ops;
    pthread_mutex_init(&p->lock, NULL);
    xm_config_init(&p->config);
    *out = &p->base;
    return XM_OK;
}
