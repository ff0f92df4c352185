/* SPDX-License-Identifier: Apache-2.0
 *
 * Other element types for the tensors of a model's inputs and outputs.
 */
#include "plugin/api/api.h"
#include "transformations/graph/retype.h"
#include "xemoe/xemoe.h"

static ov_status_e
retype(ov_model_t *m, size_t index, uint32_t n_ports, const char *what,
       enum xm_status (*set)(struct xm_graph *, uint32_t, enum xm_element,
                             struct xm_error *),
       ov_element_type_e type)
{
    struct xm_error err = {0};
    const ov_status_e is_read = xm_api_model_check(m, "given other element types");
    if (is_read != OK)
        return is_read;
    if (index >= n_ports)
        return xm_api_fail(UNKNOW_EXCEPTION, "there is no %s %zu: the model has %u", what,
                           index, n_ports);
    if (set(m->graph, (uint32_t)index, (enum xm_element)type, &err) == XM_OK)
        xm_ports_retype(m->graph, &m->graph->dims, &m->ports, &err);
    return xm_api_error(&err);
}

ov_status_e
xm_model_set_input_type(ov_model_t *model, size_t index, ov_element_type_e type)
{
    if (!xm_api_is(model, XM_API_MODEL) || (unsigned)type >= XM_ELEMENT_COUNT)
        return xm_api_refuse(__func__);
    return retype(model, index, model->ports.n_inputs, "input", xm_graph_set_input_type,
                  type);
}

ov_status_e
xm_model_set_output_type(ov_model_t *model, size_t index, ov_element_type_e type)
{
    if (!xm_api_is(model, XM_API_MODEL) || (unsigned)type >= XM_ELEMENT_COUNT)
        return xm_api_refuse(__func__);
    return retype(model, index, model->ports.n_outputs, "output",
                  xm_graph_set_result_type, type);
}
