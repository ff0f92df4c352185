/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled models: a reference to a device's compiled model, which requests share.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/api/api.h"
#include "plugin/device_names.h"

/* AUTO_BATCH_TIMEOUT of the device BATCH, the one property that may change after compiling. It has
 * no effect, because requests are not batched, but programs read back the value that they set. */
struct xm_api_timeout {
    _Atomic(int64_t) ms; /* milliseconds; -1: the value at compile time */
};

/* ---- life -------------------------------------------------------------------------- */

static void
destroy_compiled(ov_compiled_model_t *m)
{
    xm_compiled_unref(m->compiled);
    xm_free(m->timeout);
    xm_free(m);
}

static ov_status_e
add_timeout(ov_compiled_model_t *m)
{
    m->timeout = xm_calloc(1, sizeof(*m->timeout));
    if (!m->timeout)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a compiled model");
    atomic_init(&m->timeout->ms, -1);
    return OK;
}

ov_status_e
xm_api_compiled_create(struct xm_compiled *c, const char *device,
                       ov_compiled_model_t **out)
{
    ov_compiled_model_t *m = xm_calloc(1, sizeof(*m));
    if (!m) {
        xm_compiled_unref(c);
        return xm_api_fail(GENERAL_ERROR, "out of memory for a compiled model");
    }
    m->compiled = c;
    ov_status_e s = xm_device_is_batch(device) ? add_timeout(m) : OK;
    if (s == OK)
        s = xm_api_new_handle(m, XM_API_COMPILED);
    if (s == OK)
        *out = m;
    else
        destroy_compiled(m);
    return s;
}

void
ov_compiled_model_free(ov_compiled_model_t *compiled_model)
{
    if (xm_api_handle_drop(compiled_model, XM_API_COMPILED))
        destroy_compiled(compiled_model);
}

/* ---- ports ------------------------------------------------------------------------- */

static struct xm_api_ports
inputs_of(const ov_compiled_model_t *m)
{
    return (struct xm_api_ports){m->compiled->ports.inputs, m->compiled->ports.n_inputs,
                                 false};
}

static struct xm_api_ports
outputs_of(const ov_compiled_model_t *m)
{
    return (struct xm_api_ports){m->compiled->ports.outputs, m->compiled->ports.n_outputs,
                                 true};
}

ov_status_e
ov_compiled_model_inputs_size(const ov_compiled_model_t *compiled_model, size_t *size)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !size)
        return xm_api_refuse(__func__);
    *size = compiled_model->compiled->ports.n_inputs;
    return OK;
}

ov_status_e
ov_compiled_model_input(const ov_compiled_model_t *compiled_model,
                        ov_output_const_port_t **input_port)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(xm_api_port_only(inputs_of(compiled_model)),
                                  input_port);
}

ov_status_e
ov_compiled_model_input_by_index(const ov_compiled_model_t *compiled_model,
                                 const size_t index, ov_output_const_port_t **input_port)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(
        xm_api_port_by_index(inputs_of(compiled_model), index, GENERAL_ERROR),
        input_port);
}

ov_status_e
ov_compiled_model_input_by_name(const ov_compiled_model_t *compiled_model,
                                const char *name, ov_output_const_port_t **input_port)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !name || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(xm_api_port_by_name(inputs_of(compiled_model), name),
                                  input_port);
}

ov_status_e
ov_compiled_model_outputs_size(const ov_compiled_model_t *compiled_model, size_t *size)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !size)
        return xm_api_refuse(__func__);
    *size = compiled_model->compiled->ports.n_outputs;
    return OK;
}

ov_status_e
ov_compiled_model_output(const ov_compiled_model_t *compiled_model,
                         ov_output_const_port_t **output_port)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(xm_api_port_only(outputs_of(compiled_model)),
                                  output_port);
}

ov_status_e
ov_compiled_model_output_by_index(const ov_compiled_model_t *compiled_model,
                                  const size_t index,
                                  ov_output_const_port_t **output_port)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(
        xm_api_port_by_index(outputs_of(compiled_model), index, GENERAL_ERROR),
        output_port);
}

ov_status_e
ov_compiled_model_output_by_name(const ov_compiled_model_t *compiled_model,
                                 const char *name, ov_output_const_port_t **output_port)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !name || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(xm_api_port_by_name(outputs_of(compiled_model), name),
                                  output_port);
}

/* ---- properties -------------------------------------------------------------------- */

static const char timeout_key[] = "AUTO_BATCH_TIMEOUT";

static ov_status_e
set_timeout(struct xm_api_timeout *t, const char *value)
{
    const size_t digits = strspn(value, "0123456789");
    const int64_t ms = digits < 1 || digits > 10 || value[digits] ? -1 : atoll(value);
    if (ms < 0 || ms > UINT32_MAX)
        return xm_api_fail(GENERAL_ERROR,
                           "%s is '%s': expected a whole number of milliseconds up to %u",
                           timeout_key, value, UINT32_MAX);
    atomic_store(&t->ms, ms);
    return OK;
}

static ov_status_e
set_one(const ov_compiled_model_t *m, const struct xm_property *p)
{
    if (m->timeout && strcmp(p->key, timeout_key) == 0)
        return set_timeout(m->timeout, p->value);
    return xm_api_fail(GENERAL_ERROR,
                       "property %s of a compiled model cannot be set: pass it when the "
                       "model is compiled",
                       p->key);
}

ov_status_e
ov_compiled_model_set_property(const ov_compiled_model_t *compiled_model, ...)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED))
        return xm_api_refuse(__func__);
    va_list args;
    ov_property_t property;
    va_start(args, compiled_model);
    property.key = va_arg(args, const char *);
    property.value = va_arg(args, const void *);
    va_end(args);
    return ov_compiled_model_set_properties(compiled_model, 1, &property);
}

ov_status_e
ov_compiled_model_set_properties(const ov_compiled_model_t *compiled_model,
                                 size_t num_properties, const ov_property_t *properties)
{
    struct xm_property *checked = NULL;
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || num_properties == 0)
        return xm_api_refuse(__func__);
    ov_status_e s = xm_api_properties_from_array(num_properties, properties, &checked);
    for (size_t i = 0; i < num_properties && s == OK; i++)
        s = set_one(compiled_model, &checked[i]);
    xm_free(checked);
    return s;
}

ov_status_e
ov_compiled_model_get_property(const ov_compiled_model_t *compiled_model,
                               const char *property_key, char **property_value)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !property_key || !property_value)
        return xm_api_refuse(__func__);
    struct xm_error err = {0};
    struct xm_strbuf value = {0};
    struct xm_compiled *c = compiled_model->compiled;
    const struct xm_api_timeout *t = compiled_model->timeout;
    const int64_t ms =
        t && strcmp(property_key, timeout_key) == 0 ? atomic_load(&t->ms) : -1;
    if (ms >= 0) {
        xm_strbuf_printf(&value, "%" PRId64, ms);
        return xm_api_give_text(&value, property_value);
    }
    if (c->ops->get_property(c, property_key, &value, &err) == XM_OK)
        return xm_api_give_text(&value, property_value);
    xm_strbuf_free(&value);
    return xm_api_error(&err);
}

/* ---- export ------------------------------------------------------------------------ */

ov_status_e
ov_compiled_model_export_model(const ov_compiled_model_t *compiled_model,
                               const char *export_model_path)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !export_model_path)
        return xm_api_refuse(__func__);
    struct xm_compiled *c = compiled_model->compiled;
    if (!c->ops->export_model)
        return xm_api_fail(NOT_IMPLEMENTED, "this device cannot export compiled models");
    struct xm_error err = {0};
    xm_compiled_export_file(c, export_model_path, &err);
    return xm_api_error(&err);
}
