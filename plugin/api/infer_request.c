/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: life, states, measurements.
 */
#include "plugin/api/api.h"
#include "xemoe/xemoe.h"

static enum xm_status
create_parts(ov_infer_request_t *r, struct xm_compiled *c, struct xm_error *err)
{
    r->inputs = xm_calloc(c->ports.n_inputs, sizeof(ov_tensor_t *));
    r->outputs = xm_calloc(c->ports.n_outputs, sizeof(ov_tensor_t *));
    r->is_stale = xm_calloc(c->ports.n_outputs, sizeof(bool));
    if (!r->inputs || !r->outputs || !r->is_stale)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the tensors of a request");
    XM_TRY(xm_api_runner_create(&r->runner, err));
    return xm_compiled_create_request(c, &r->infer, err);
}

ov_status_e
ov_compiled_model_create_infer_request(const ov_compiled_model_t *compiled_model,
                                       ov_infer_request_t **infer_request)
{
    struct xm_error err = {0};
    if (!compiled_model || !infer_request)
        return INVALID_C_PARAM;
    ov_infer_request_t *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a request");
    if (create_parts(r, compiled_model->compiled, &err) != XM_OK) {
        ov_infer_request_free(r);
        return xm_api_error(&err);
    }
    *infer_request = r;
    return OK;
}

void
ov_infer_request_free(ov_infer_request_t *infer_request)
{
    ov_infer_request_t *r = infer_request;
    if (!r)
        return;
    xm_api_runner_destroy(r->runner);
    for (uint32_t i = 0; r->infer && i < r->infer->compiled->ports.n_inputs; i++)
        ov_tensor_free(r->inputs[i]);
    for (uint32_t i = 0; r->infer && i < r->infer->compiled->ports.n_outputs; i++)
        ov_tensor_free(r->outputs[i]);
    xm_infer_destroy(r->infer);
    xm_free(r->inputs);
    xm_free(r->outputs);
    xm_free(r->is_stale);
    xm_free(r);
}

ov_status_e
xm_request_reset_states(ov_infer_request_t *infer_request)
{
    if (!infer_request)
        return INVALID_C_PARAM;
    if (!xm_api_request_lock(infer_request))
        return REQUEST_BUSY;
    infer_request->infer->ops->reset(infer_request->infer);
    xm_api_request_unlock(infer_request);
    return OK;
}

ov_status_e
ov_infer_request_get_profiling_info(const ov_infer_request_t *infer_request,
                                    ov_profiling_info_list_t *profiling_infos)
{
    if (!infer_request || !profiling_infos)
        return INVALID_C_PARAM;
    if (!xm_api_request_lock(infer_request))
        return REQUEST_BUSY;
    xm_api_request_unlock(infer_request);
    *profiling_infos =
        (ov_profiling_info_list_t){NULL, 0}; /* devices do not report times */
    return OK;
}

void
ov_profiling_info_list_free(ov_profiling_info_list_t *profiling_infos)
{
    if (!profiling_infos)
        return;
    for (size_t i = 0; profiling_infos->profiling_infos && i < profiling_infos->size;
         i++) {
        ov_free(profiling_infos->profiling_infos[i].node_name);
        ov_free(profiling_infos->profiling_infos[i].exec_type);
        ov_free(profiling_infos->profiling_infos[i].node_type);
    }
    xm_free(profiling_infos->profiling_infos);
    *profiling_infos = (ov_profiling_info_list_t){NULL, 0};
}
