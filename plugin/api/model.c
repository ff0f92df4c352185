/* SPDX-License-Identifier: Apache-2.0
 *
 * Models: an immutable graph and its ports. Compiling uses a clone of the graph.
 */
#include "plugin/api/api.h"

/* ---- life -------------------------------------------------------------------------- */

static void
destroy_model(struct xm_mapping *m)
{
    ov_model_t *model = (ov_model_t *)m;
    xm_exec_graph_free(&model->exec);
    xm_compiled_unref(model->runtime_of);
    xm_graph_destroy(model->graph);
    xm_free(model);
}

ov_status_e
xm_api_model_create(struct xm_graph *g, ov_model_t **out)
{
    ov_model_t *m = xm_calloc(1, sizeof(*m));
    if (!m) {
        xm_graph_destroy(g);
        return xm_api_fail(GENERAL_ERROR, "out of memory for a model");
    }
    m->base = (struct xm_mapping){.refs = 1, .free = destroy_model};
    m->graph = g;
    struct xm_error err = {0};
    xm_ports_from_graph(g, &g->arena, &g->dims, &m->ports, &err);
    ov_status_e s =
        err.status == XM_OK ? xm_api_new_handle(m, XM_API_MODEL) : xm_api_error(&err);
    if (s == OK)
        *out = m;
    else
        xm_mapping_unref(&m->base);
    return s;
}

void
ov_model_free(ov_model_t *model)
{
    if (xm_api_handle_drop(model, XM_API_MODEL))
        xm_mapping_unref(&model->base);
}

/* ---- facts about a model ------------------------------------------------------------------- */

static bool
has_dynamic_step(const struct xm_exec_graph *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t k = 0; k < g->nodes[i].n_out; k++) {
            const struct xm_exec_port *p = &g->nodes[i].out[k];
            for (uint32_t d = 0; d < p->rank; d++) {
                if (p->dim[d] < 0)
                    return true;
            }
        }
    }
    return false;
}

bool
ov_model_is_dynamic(const ov_model_t *model)
{
    if (!xm_api_is(model, XM_API_MODEL))
        return false;
    if (model->runtime_of)
        return has_dynamic_step(&model->exec);
    xm_for_each_node(n, model->graph)
    {
        for (uint32_t i = 0; i < n->n_out; i++) {
            if (!xm_shape_is_static(&n->out[i].type.shape))
                return true;
        }
    }
    return false;
}

ov_status_e
ov_model_get_friendly_name(const ov_model_t *model, char **friendly_name)
{
    if (!xm_api_is(model, XM_API_MODEL) || !friendly_name)
        return xm_api_refuse(__func__);
    char *copy = xm_strdup(model->graph->name);
    if (!copy)
        return xm_api_fail(GENERAL_ERROR, "out of memory for the name of a model");
    *friendly_name = copy;
    return OK;
}

ov_status_e
ov_model_inputs_size(const ov_model_t *model, size_t *input_size)
{
    if (!xm_api_is(model, XM_API_MODEL) || !input_size)
        return xm_api_refuse(__func__);
    *input_size = model->ports.n_inputs;
    return OK;
}

ov_status_e
ov_model_outputs_size(const ov_model_t *model, size_t *output_size)
{
    if (!xm_api_is(model, XM_API_MODEL) || !output_size)
        return xm_api_refuse(__func__);
    *output_size = model->ports.n_outputs;
    return OK;
}

/* ---- ports: the only one, by name, by index; const and non-const --------------------------- */

static struct xm_api_ports
inputs_of(const ov_model_t *m)
{
    return (struct xm_api_ports){
        .list = m->ports.inputs, .n = m->ports.n_inputs, .is_output = false};
}

static struct xm_api_ports
outputs_of(const ov_model_t *m)
{
    return (struct xm_api_ports){
        .list = m->ports.outputs, .n = m->ports.n_outputs, .is_output = true};
}

ov_status_e
ov_model_const_input(const ov_model_t *model, ov_output_const_port_t **input_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(xm_api_port_only(inputs_of(model)), input_port);
}

ov_status_e
ov_model_const_input_by_name(const ov_model_t *model, const char *tensor_name,
                             ov_output_const_port_t **input_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !tensor_name || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(xm_api_port_by_name(inputs_of(model), tensor_name),
                                  input_port);
}

ov_status_e
ov_model_const_input_by_index(const ov_model_t *model, const size_t index,
                              ov_output_const_port_t **input_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(
        xm_api_port_by_index(inputs_of(model), index, UNKNOW_EXCEPTION), input_port);
}

ov_status_e
ov_model_input(const ov_model_t *model, ov_output_port_t **input_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_port(xm_api_port_only(inputs_of(model)), input_port);
}

ov_status_e
ov_model_input_by_name(const ov_model_t *model, const char *tensor_name,
                       ov_output_port_t **input_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !tensor_name || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_port(xm_api_port_by_name(inputs_of(model), tensor_name),
                            input_port);
}

ov_status_e
ov_model_input_by_index(const ov_model_t *model, const size_t index,
                        ov_output_port_t **input_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !input_port)
        return xm_api_refuse(__func__);
    return xm_api_give_port(
        xm_api_port_by_index(inputs_of(model), index, UNKNOW_EXCEPTION), input_port);
}

ov_status_e
ov_model_const_output(const ov_model_t *model, ov_output_const_port_t **output_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(xm_api_port_only(outputs_of(model)), output_port);
}

ov_status_e
ov_model_const_output_by_name(const ov_model_t *model, const char *tensor_name,
                              ov_output_const_port_t **output_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !tensor_name || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(xm_api_port_by_name(outputs_of(model), tensor_name),
                                  output_port);
}

ov_status_e
ov_model_const_output_by_index(const ov_model_t *model, const size_t index,
                               ov_output_const_port_t **output_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_const_port(
        xm_api_port_by_index(outputs_of(model), index, UNKNOW_EXCEPTION), output_port);
}

ov_status_e
ov_model_output(const ov_model_t *model, ov_output_port_t **output_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_port(xm_api_port_only(outputs_of(model)), output_port);
}

ov_status_e
ov_model_output_by_name(const ov_model_t *model, const char *tensor_name,
                        ov_output_port_t **output_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !tensor_name || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_port(xm_api_port_by_name(outputs_of(model), tensor_name),
                            output_port);
}

ov_status_e
ov_model_output_by_index(const ov_model_t *model, const size_t index,
                         ov_output_port_t **output_port)
{
    if (!xm_api_is(model, XM_API_MODEL) || !output_port)
        return xm_api_refuse(__func__);
    return xm_api_give_port(
        xm_api_port_by_index(outputs_of(model), index, UNKNOW_EXCEPTION), output_port);
}
