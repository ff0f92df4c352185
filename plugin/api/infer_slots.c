/* SPDX-License-Identifier: Apache-2.0
 *
 * The slots of a request: the tensors of its inputs and outputs.
 *
 * Each slot refers to the tensor that the user set, or to one created when the user first asks for
 * it. The results of outputs that nobody has asked for are not copied from the device.
 */
#include <string.h>

#include "plugin/api/api.h"

/* ---- slots ------------------------------------------------------------------------- */

static struct xm_api_slot
slot_of(const ov_infer_request_t *r, bool is_output, uint32_t i)
{
    const struct xm_compiled *c = r->infer->compiled;
    return is_output
               ? (struct xm_api_slot){OK, &r->outputs[i], &c->ports.outputs[i], i, true}
               : (struct xm_api_slot){OK, &r->inputs[i], &c->ports.inputs[i], i, false};
}

static struct xm_api_slot
no_slot(ov_status_e status)
{
    return (struct xm_api_slot){.status = status};
}

struct xm_api_slot
xm_api_slot_by_name(const ov_infer_request_t *r, const char *name)
{
    const struct xm_compiled *c = r->infer->compiled;
    uint32_t i = xm_port_find(c->ports.inputs, c->ports.n_inputs, name);
    if (i != UINT32_MAX)
        return slot_of(r, false, i);
    i = xm_port_find(c->ports.outputs, c->ports.n_outputs, name);
    if (i != UINT32_MAX)
        return slot_of(r, true, i);
    return no_slot(
        xm_api_fail(GENERAL_ERROR, "Port for tensor name %s was not found", name));
}

struct xm_api_slot
xm_api_slot_by_port(const ov_infer_request_t *r, const struct xm_api_port *p)
{
    const struct xm_compiled *c = r->infer->compiled;
    uint32_t i = p->is_output
                     ? xm_port_find(c->ports.outputs, c->ports.n_outputs, p->name)
                     : xm_port_find(c->ports.inputs, c->ports.n_inputs, p->name);
    if (i != UINT32_MAX)
        return slot_of(r, p->is_output, i);
    return no_slot(xm_api_fail(
        GENERAL_ERROR, "port %s does not belong to the model of this request", p->name));
}

struct xm_api_slot
xm_api_slot_by_index(const ov_infer_request_t *r, bool is_output, size_t i)
{
    const struct xm_compiled *c = r->infer->compiled;
    uint32_t n = is_output ? c->ports.n_outputs : c->ports.n_inputs;
    if (i < n)
        return slot_of(r, is_output, (uint32_t)i);
    return no_slot(xm_api_fail(GENERAL_ERROR, "there is no %s %zu: the model has %u",
                               is_output ? "output" : "input", i, n));
}

struct xm_api_slot
xm_api_slot_only(const ov_infer_request_t *r, bool is_output)
{
    const struct xm_compiled *c = r->infer->compiled;
    uint32_t n = is_output ? c->ports.n_outputs : c->ports.n_inputs;
    if (n == 1)
        return slot_of(r, is_output, 0);
    return no_slot(xm_api_fail(GENERAL_ERROR,
                               "the model has %u %ss: choose one by name or index", n,
                               is_output ? "output" : "input"));
}

/* ---- setting ----------------------------------------------------------------------- */

static void
print_tensor(const ov_tensor_t *t, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%s[", xm_element_text((enum xm_element)t->type));
    for (uint32_t i = 0; i < t->rank; i++)
        xm_strbuf_printf(out, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    xm_strbuf_add(out, "]");
}

static void
print_port(const struct xm_port *p, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%s[", xm_element_text(p->type.element));
    for (uint32_t i = 0; i < p->type.shape.rank; i++) {
        xm_strbuf_add(out, i ? "," : "");
        xm_bound_print(p->bound[i], out);
    }
    xm_strbuf_add(out, "]");
}

static bool
fits_port(const struct xm_api_slot *s, const ov_tensor_t *t)
{
    const struct xm_type *type = &s->port->type;
    if ((enum xm_element)t->type != type->element)
        return false;
    bool fits = t->rank == type->shape.rank;
    for (uint32_t i = 0; fits && i < t->rank; i++)
        fits = xm_bound_has(s->port->bound[i], t->dim[i]);
    return fits;
}

static ov_status_e
fail_unfit(const struct xm_api_slot *s, const ov_tensor_t *t)
{
    struct xm_strbuf expected = {0}, found = {0};
    print_port(s->port, &expected);
    print_tensor(t, &found);
    xm_api_fail(GENERAL_ERROR, "%s '%s': expected %s, found %s",
                s->is_output ? "output" : "input", s->port->name,
                xm_strbuf_text(&expected), xm_strbuf_text(&found));
    xm_strbuf_free(&expected);
    xm_strbuf_free(&found);
    return GENERAL_ERROR;
}

static struct xm_host_tensor
host_tensor(const ov_tensor_t *t)
{
    struct xm_host_tensor host = {.element = (enum xm_element)t->type,
                                  .rank = t->rank,
                                  .data = t->data,
                                  .bytes = t->bytes};
    memcpy(host.dim, t->dim, sizeof(host.dim));
    return host;
}

static void
hold(ov_tensor_t **place, ov_tensor_t *t)
{
    ov_tensor_t *old = *place;
    xm_mapping_ref(&t->base);
    *place = t;
    xm_mapping_unref(old ? &old->base : NULL);
}

/* Passes a remote tensor to the device, which may reject it. For an output, any other tensor ends
 * writing to remote memory; for an input it needs nothing here. */
static enum xm_status
bind_remote(const ov_infer_request_t *r, const struct xm_api_slot *s, ov_tensor_t *t,
            struct xm_error *err)
{
    const struct xm_infer_ops *ops = r->infer->ops;
    const bool is_remote = t && xm_api_tensor_is_remote(t);
    if (!ops->set_remote_input)
        return is_remote ? xm_fail(err, XM_INVALID,
                                   "%s '%s': this device does not support remote tensors",
                                   s->is_output ? "output" : "input", s->port->name)
                         : XM_OK;
    if (s->is_output)
        return ops->set_remote_output(r->infer, s->index, is_remote ? t->remote : NULL,
                                      err);
    if (!is_remote)
        return XM_OK;
    const struct xm_host_tensor host = host_tensor(t);
    XM_TRY(ops->set_remote_input(r->infer, s->index, &host, t->remote, err));
    hold(&r->bound[s->index], t);
    return XM_OK;
}

ov_status_e
xm_api_slot_set(ov_infer_request_t *r, struct xm_api_slot s, const ov_tensor_t *tensor)
{
    struct xm_error err = {0};
    ov_tensor_t *t =
        /* only its reference count changes, and an output's bytes */
        (ov_tensor_t *)tensor;
    if (s.status != OK)
        return s.status;
    if (!fits_port(&s, t))
        return fail_unfit(&s, t);
    if (!xm_api_request_lock(r))
        return REQUEST_BUSY;
    if (bind_remote(r, &s, t, &err) != XM_OK) {
        xm_api_request_unlock(r);
        return xm_api_error(&err);
    }
    hold(s.tensor, t);
    if (s.is_output)
        r->is_stale[s.index] = false; /* the last run's result is not copied into it */
    xm_api_request_unlock(r);
    return OK;
}

/* ---- getting ----------------------------------------------------------------------- */

/* Creates a tensor with the port's shape; dynamic dimensions are 0. */
static enum xm_status
fill_slot(const struct xm_api_slot *s, struct xm_error *err)
{
    const struct xm_shape *shape = &s->port->type.shape;
    int64_t dim[XM_MAX_RANK];
    if (*s->tensor)
        return XM_OK;
    for (uint32_t i = 0; i < shape->rank; i++)
        dim[i] = xm_bound_is_fixed(s->port->bound[i]) ? s->port->bound[i].min : 0;
    return xm_api_tensor_create((ov_element_type_e)s->port->type.element, shape->rank,
                                dim, s->tensor, err);
}

/* Copies the result of the last run into an output's tensor. */
static enum xm_status
refresh_output(const ov_infer_request_t *r, uint32_t i, struct xm_error *err)
{
    struct xm_host_tensor result;
    ov_tensor_t *t = r->outputs[i];
    /* then the run has written into it */
    const bool is_remote = xm_api_tensor_is_remote(t);
    XM_TRY(is_remote ? r->infer->ops->describe_output(r->infer, i, &result, err)
                     : r->infer->ops->output(r->infer, i, &result, err));
    if (result.element != (enum xm_element)t->type)
        return xm_fail(
            err, XM_INVALID, "output '%s': expected %s, the device returned %s",
            r->infer->compiled->ports.outputs[i].name,
            xm_element_text((enum xm_element)t->type), xm_element_text(result.element));
    XM_TRY(xm_api_tensor_reshape(t, result.rank, result.dim, err));
    if (t->bytes && !is_remote)
        memcpy(t->data, result.data, (size_t)t->bytes);
    r->is_stale[i] = false;
    return XM_OK;
}

ov_status_e
xm_api_slot_get(const ov_infer_request_t *r, struct xm_api_slot s, ov_tensor_t **tensor)
{
    struct xm_error err = {0};
    if (s.status != OK)
        return s.status;
    if (!xm_api_request_lock(r))
        return REQUEST_BUSY;
    if (fill_slot(&s, &err) == XM_OK && s.is_output && r->is_stale[s.index])
        refresh_output(r, s.index, &err);
    ov_status_e code = xm_api_error(&err);
    if (code == OK) {
        xm_mapping_ref(&(*s.tensor)->base);
        code = xm_api_tensor_give(*s.tensor, tensor);
    }
    xm_api_request_unlock(r);
    return code;
}

/* ---- around a run ------------------------------------------------------------------ */

enum xm_status
xm_api_slots_bind(ov_infer_request_t *r, struct xm_error *err)
{
    for (uint32_t i = 0; i < r->infer->compiled->ports.n_inputs; i++) {
        struct xm_api_slot s = slot_of(r, false, i);
        if (!*s.tensor && !xm_port_is_static(s.port))
            return xm_fail(err, XM_INVALID, "input '%s' has not been set", s.port->name);
        XM_TRY(fill_slot(&s, err));
        const struct xm_host_tensor host = host_tensor(*s.tensor);
        XM_TRY(xm_api_tensor_is_remote(*s.tensor)
                   ? bind_remote(r, &s, *s.tensor, err)
                   : r->infer->ops->set_input(r->infer, i, &host, err));
    }
    for (uint32_t i = 0; i < r->infer->compiled->ports.n_outputs; i++) {
        struct xm_api_slot s = slot_of(r, true, i);
        XM_TRY(bind_remote(r, &s, *s.tensor, err));
    }
    return XM_OK;
}

enum xm_status
xm_api_slots_collect(ov_infer_request_t *r, struct xm_error *err)
{
    for (uint32_t i = 0; i < r->infer->compiled->ports.n_outputs; i++)
        r->is_stale[i] = true;
    for (uint32_t i = 0; i < r->infer->compiled->ports.n_outputs; i++) {
        if (r->outputs[i])
            XM_TRY(refresh_output(r, i, err));
    }
    return XM_OK;
}
