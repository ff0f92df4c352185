/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of external plugins. Inputs are compared with the ports before the plugin gets them,
 * results before anyone reads them.
 */
#include <string.h>

#include "plugin/bind.h"
#include "plugin/external/external.h"
#include "transformations/graph/symbols.h"

struct external_infer {
    struct xm_infer base;
    struct xm_external_compiled *owner; /* borrowed; base.compiled holds a reference */
    void *request;                      /* the plugin's handle */
    bool *is_set;                       /* for each input */
    /* For each input and output: the plugin's memory that was set; NULL: none. */
    struct xm_external_block **inputs, **outputs;
    bool has_run, cancelled;
    int64_t tokens; /* positions that a run adds, from the inputs' shapes; 0: no states */
    uint64_t past;  /* number of positions in the states */
};

static struct external_infer *
self(struct xm_infer *r)
{
    return (struct external_infer *)r;
}

static const struct xm_external *
plugin_of(const struct external_infer *r)
{
    return r->owner->shared;
}

static const struct xm_ports *
ports_of(const struct external_infer *r)
{
    return &r->owner->base.ports;
}

/* ---- inputs ------------------------------------------------------------------------ */

static void
find_tokens(struct external_infer *r, const struct xm_port *port,
            const struct xm_host_tensor *t)
{
    for (uint32_t i = 0; i < t->rank; i++) {
        if (xm_dim_is_symbol(port->type.shape.dim[i], XM_SYMBOL_TOKENS))
            r->tokens = t->dim[i];
    }
}

/* Checks the tensor for input i; returns its port, and the tensor in the plugin's form. */
static enum xm_status
check_input(const struct external_infer *r, uint32_t input,
            const struct xm_host_tensor *t, const struct xm_port **port,
            xm_ext_tensor *given, struct xm_error *err)
{
    if (input >= ports_of(r)->n_inputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no input %u", input);
    *port = &ports_of(r)->inputs[input];
    XM_TRY(xm_port_check(*port, t, err));
    *given = (xm_ext_tensor){.element = (uint32_t)(*port)->type.element,
                             .rank = t->rank,
                             .data = t->data,
                             .bytes = t->bytes};
    memcpy(given->dim, t->dim, sizeof(given->dim));
    return XM_OK;
}

/* Replaces the memory that the request holds for a port. */
static void
hold(struct xm_external_block **place, struct xm_external_block *b)
{
    xm_external_block_ref(b);
    xm_external_block_unref(*place);
    *place = b;
}

static enum xm_status
set_input(struct xm_infer *base, uint32_t input, const struct xm_host_tensor *t,
          struct xm_error *err)
{
    struct external_infer *r = self(base);
    const struct xm_external *x = plugin_of(r);
    const struct xm_port *port = NULL;
    xm_ext_tensor given;
    xm_ext_error why = {""};
    XM_TRY(check_input(r, input, t, &port, &given, err));
    XM_TRY(xm_port_check_rows(port, t, err));
    XM_TRY(xm_external_status(
        x, "set_input", x->ops.set_input(r->request, input, &given, &why), &why, err));
    r->is_set[input] = true;
    hold(&r->inputs[input], NULL);
    find_tokens(r, port, t);
    return XM_OK;
}

/* Returns the plugin's memory behind `m`; fails if `m` belongs to another plugin. */
static enum xm_status
find_block(const struct external_infer *r, const struct xm_remote *m,
           struct xm_external_block **out, struct xm_error *err)
{
    *out = NULL;
    if (m && m->context != r->owner->context)
        return xm_fail(
            err, XM_INVALID,
            "the memory of the tensor belongs to another remote context than the model");
    if (m)
        *out = ((const struct xm_external_memory *)m)->block;
    return XM_OK;
}

static enum xm_status
set_remote_input(struct xm_infer *base, uint32_t input, const struct xm_host_tensor *t,
                 struct xm_remote *m, struct xm_error *err)
{
    struct external_infer *r = self(base);
    const struct xm_external *x = plugin_of(r);
    const struct xm_port *port = NULL;
    struct xm_host_tensor shape = *t;
    xm_ext_tensor given;
    xm_ext_error why = {""};
    struct xm_external_block *block = NULL;
    XM_TRY(find_block(r, m, &block, err));
    void *memory = block ? block->memory : NULL;
    /* a placeholder: the check requires data, but nobody reads them */
    shape.data = &shape;
    XM_TRY(check_input(r, input, &shape, &port, &given, err));
    given.data = NULL;
    XM_TRY(xm_external_status(
        x, "set_remote_input",
        x->ops.set_remote_input(r->request, input, &given, memory, &why), &why, err));
    r->is_set[input] = true;
    hold(&r->inputs[input], block);
    find_tokens(r, port, t);
    return XM_OK;
}

static enum xm_status
set_remote_output(struct xm_infer *base, uint32_t output, struct xm_remote *m,
                  struct xm_error *err)
{
    struct external_infer *r = self(base);
    const struct xm_external *x = plugin_of(r);
    xm_ext_error why = {""};
    struct xm_external_block *block = NULL;
    if (output >= ports_of(r)->n_outputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no output %u", output);
    XM_TRY(find_block(r, m, &block, err));
    void *memory = block ? block->memory : NULL;
    XM_TRY(xm_external_status(x, "set_remote_output",
                              x->ops.set_remote_output(r->request, output, memory, &why),
                              &why, err));
    hold(&r->outputs[output], block);
    return XM_OK;
}

/* ---- runs -------------------------------------------------------------------------- */

static enum xm_status
infer(struct xm_infer *base, struct xm_error *err)
{
    struct external_infer *r = self(base);
    const struct xm_external *x = plugin_of(r);
    xm_ext_error why = {""};
    for (uint32_t i = 0; i < ports_of(r)->n_inputs; i++) {
        if (!r->is_set[i])
            return xm_fail(err, XM_INVALID, "input '%s' has not been set",
                           ports_of(r)->inputs[i].name);
    }
    r->has_run = false;
    if (xm_flag_get(&r->cancelled))
        return xm_fail(err, XM_CANCELLED, "cancelled before the run");
    XM_TRY(xm_external_status(x, "infer", x->ops.infer(r->request, &why), &why, err));
    r->has_run = true;
    r->past += (uint64_t)r->tokens;
    return XM_OK;
}

/* Checks that a result of the plugin has the model's type and shape, because its readers rely on
 * them. */
static enum xm_status
check_result(const struct xm_external *x, const struct xm_port *port,
             const xm_ext_tensor *t, bool needs_data, struct xm_error *err)
{
    uint64_t n = 1, bytes = 0;
    if (t->element != (uint32_t)port->type.element || t->rank != port->type.shape.rank)
        return xm_fail(err, XM_DEVICE,
                       "plugin %s: result '%s' has element type %u and rank %u, expected "
                       "%u (%s) and %u",
                       x->name, port->name, t->element, t->rank,
                       (unsigned)port->type.element, xm_element_text(port->type.element),
                       port->type.shape.rank);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0 || !xm_bound_has(port->bound[i], t->dim[i]) ||
            !xm_mul_size(n, (uint64_t)t->dim[i], &n))
            return xm_fail(err, XM_DEVICE,
                           "plugin %s: dimension %u of result '%s' is %lld, expected "
                           "%lld to %lld (-1: any)",
                           x->name, i, port->name, (long long)t->dim[i],
                           (long long)port->bound[i].min, (long long)port->bound[i].max);
    }
    if (!xm_element_bytes(port->type.element, n, &bytes) || bytes != t->bytes ||
        (needs_data && bytes && !t->data))
        return xm_fail(
            err, XM_DEVICE,
            "plugin %s: the shape of result '%s' needs %llu bytes, found %llu%s", x->name,
            port->name, (unsigned long long)bytes, (unsigned long long)t->bytes,
            t->data ? "" : " and no data");
    return XM_OK;
}

static enum xm_status
find_output(struct external_infer *r, uint32_t index, bool needs_data,
            struct xm_host_tensor *t, struct xm_error *err)
{
    const struct xm_external *x = plugin_of(r);
    xm_ext_tensor given = {0};
    xm_ext_error why = {""};
    if (index >= ports_of(r)->n_outputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no output %u", index);
    const struct xm_port *port = &ports_of(r)->outputs[index];
    if (!r->has_run)
        return xm_fail(err, XM_INVALID,
                       "output '%s' has no value before a successful run", port->name);
    XM_TRY(xm_external_status(x, "output", x->ops.output(r->request, index, &given, &why),
                              &why, err));
    XM_TRY(check_result(x, port, &given, needs_data, err));
    *t = (struct xm_host_tensor){.element = port->type.element,
                                 .rank = given.rank,
                                 .data = given.data,
                                 .bytes = given.bytes};
    memcpy(t->dim, given.dim, sizeof(t->dim));
    return XM_OK;
}

static enum xm_status
output(struct xm_infer *base, uint32_t index, struct xm_host_tensor *t,
       struct xm_error *err)
{
    return find_output(self(base), index, true, t, err);
}

static enum xm_status
describe_output(struct xm_infer *base, uint32_t index, struct xm_host_tensor *t,
                struct xm_error *err)
{
    return find_output(self(base), index, false, t, err);
}

static void
reset(struct xm_infer *base)
{
    struct external_infer *r = self(base);
    if (plugin_of(r)->ops.reset)
        plugin_of(r)->ops.reset(r->request);
    r->past = 0;
}

static uint64_t
past(const struct xm_infer *base)
{
    return ((const struct external_infer *)base)->past;
}

static void
cancel(struct xm_infer *base)
{
    struct external_infer *r = self(base);
    xm_flag_set(&r->cancelled, true);
    if (plugin_of(r)->ops.cancel)
        plugin_of(r)->ops.cancel(r->request);
}

static void
resume(struct xm_infer *base)
{
    struct external_infer *r = self(base);
    xm_flag_set(&r->cancelled, false);
    if (plugin_of(r)->ops.resume)
        plugin_of(r)->ops.resume(r->request);
}

/* ---- times ------------------------------------------------------------------------- */

struct rows {
    xm_profile_row_fn fn;
    void *ctx;
    uint32_t n;
};

static const char *
text_or_none(const char *text)
{
    return text ? text : "";
}

static void
on_step(void *ctx, const xm_ext_step *step)
{
    struct rows *rows = ctx;
    const struct xm_profile_row row = {.step = rows->n++,
                                       .kind = step->on_host ? "host" : "primitive",
                                       .op = text_or_none(step->type),
                                       .name = text_or_none(step->name),
                                       .type = text_or_none(step->type),
                                       .precision = text_or_none(step->precision),
                                       .kernel = text_or_none(step->kernel),
                                       .on_host = step->on_host != 0,
                                       .step_runs = step->runs,
                                       .runs = step->runs,
                                       .ns = step->ns};
    rows->fn(rows->ctx, &row);
}

static enum xm_status
profile_rows(struct xm_infer *base, xm_profile_row_fn fn, void *ctx, struct xm_error *err)
{
    struct external_infer *r = self(base);
    const struct xm_external *x = plugin_of(r);
    struct rows rows = {fn, ctx, 0};
    xm_ext_error why = {""};
    return xm_external_status(
        x, "profile", x->ops.profile(r->request, on_step, &rows, &why), &why, err);
}

static void
profile_reset(struct xm_infer *base)
{
    struct external_infer *r = self(base);
    plugin_of(r)->ops.profile_reset(r->request);
}

static enum xm_status
no_trace(const struct external_infer *r, struct xm_error *err)
{
    return xm_fail(err, XM_UNSUPPORTED,
                   "plugin %s sums times by step and offers no trace of launches",
                   plugin_of(r)->name);
}

static enum xm_status
begin_trace(struct xm_infer *base, struct xm_error *err)
{
    return no_trace(self(base), err);
}

static enum xm_status
trace(struct xm_infer *base, xm_trace_row_fn fn, void *ctx, uint64_t *dropped,
      struct xm_error *err)
{
    (void)fn;
    (void)ctx;
    *dropped = 0;
    return no_trace(self(base), err);
}

/* ---- life -------------------------------------------------------------------------- */

/* Frees an array of references; NULL is allowed. */
static void
let_go(struct xm_external_block **blocks, uint32_t n)
{
    for (uint32_t i = 0; blocks && i < n; i++)
        xm_external_block_unref(blocks[i]);
    xm_free(blocks);
}

static void
destroy(struct xm_infer *base)
{
    struct external_infer *r = self(base);
    if (r->request)
        plugin_of(r)->ops.destroy_request(r->request);
    let_go(r->inputs, ports_of(r)->n_inputs);
    let_go(r->outputs, ports_of(r)->n_outputs);
    xm_free(r->is_set);
    xm_free(r);
}

#define INFER_OPS                                                                        \
    .set_input = set_input, .infer = infer, .output = output, .reset = reset,            \
    .past = past, .cancel = cancel, .resume = resume, .destroy = destroy

static const struct xm_profile_ops profile_ops = {profile_rows, profile_reset,
                                                  begin_trace, trace};
#define REMOTE_OPS                                                                       \
    .set_remote_input = set_remote_input, .set_remote_output = set_remote_output,        \
    .describe_output = describe_output

/* Indexed by whether the plugin has contexts, and whether it measures. */
static const struct xm_infer_ops all_ops[2][2] = {
    {{INFER_OPS}, {INFER_OPS, .profile = &profile_ops}},
    {{INFER_OPS, REMOTE_OPS}, {INFER_OPS, REMOTE_OPS, .profile = &profile_ops}},
};

static enum xm_status
make(struct external_infer *r, struct xm_error *err)
{
    const struct xm_external *x = plugin_of(r);
    void *request = NULL;
    xm_ext_error why = {""};
    if (r->owner->model && r->owner->model->has_states && !x->ops.reset)
        return xm_fail(err, XM_UNSUPPORTED,
                       "plugin %s has no reset, which models with states need", x->name);
    const int32_t status = x->ops.create_request(r->owner->compiled, &request, &why);
    XM_TRY(xm_external_status(x, "create_request", status, &why, err));
    r->request = request;
    return request ? XM_OK
                   : xm_fail(err, XM_DEVICE,
                             "plugin %s: create_request returned no request", x->name);
}

enum xm_status
xm_external_create_request(struct xm_compiled *c, struct xm_infer **out,
                           struct xm_error *err)
{
    struct external_infer *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_no_memory(err, "a request");
    r->owner = (struct xm_external_compiled *)c;
    const xm_ext_ops *ops = &plugin_of(r)->ops;
    r->base.ops = &all_ops[r->owner->context != NULL && ops->set_remote_input]
                          [ops->profile != NULL];
    r->is_set = xm_calloc(c->ports.n_inputs + 1u, sizeof(*r->is_set));
    r->inputs = xm_calloc(c->ports.n_inputs + 1u, sizeof(struct xm_external_block *));
    r->outputs = xm_calloc(c->ports.n_outputs + 1u, sizeof(struct xm_external_block *));
    enum xm_status s = r->is_set && r->inputs && r->outputs
                           ? make(r, err)
                           : xm_no_memory(err, "a request");
    if (s == XM_OK)
        *out = &r->base;
    else
        destroy(&r->base);
    return s;
}
