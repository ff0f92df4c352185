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

/* ---- measurements ------------------------------------------------------------------ */

/* The list that is being made: an entry a step, whose kernels come row by row. */
struct infos {
    ov_profiling_info_list_t list;
    size_t capacity;
    uint32_t step; /* of the last entry                       */
    uint64_t ns;   /* of it                                   */
    bool failed;   /* out of memory: what is there is to go   */
};

static bool
add_info(struct infos *l, const struct xm_profile_row *row)
{
    if (l->list.size == l->capacity) {
        const size_t capacity = l->capacity ? 2 * l->capacity : 128;
        ov_profiling_info_t *list =
            xm_realloc(l->list.profiling_infos, capacity * sizeof(*list));
        if (!list)
            return false;
        l->list.profiling_infos = list;
        l->capacity = capacity;
    }
    const bool has_run = row->step_runs > 0;
    ov_profiling_info_t *info = &l->list.profiling_infos[l->list.size++];
    *info = (ov_profiling_info_t){.status = row->runs ? EXECUTED
                                            : has_run ? OPTIMIZED_OUT
                                                      : NOT_RUN,
                                  .node_name = xm_strdup(row->name),
                                  .exec_type = xm_strdup(row->kernel),
                                  .node_type = xm_strdup(row->op)};
    l->step = row->step;
    l->ns = 0;
    return info->node_name && info->exec_type && info->node_type;
}

/* Another kernel of the step: "moe_route_ref moe_gate_up_vec". */
static bool
add_kernel(ov_profiling_info_t *info, const char *kernel)
{
    struct xm_strbuf text = {0};
    xm_strbuf_printf(&text, "%s %s", info->exec_type, kernel);
    char *joined = xm_strbuf_take(&text);
    if (!joined)
        return false;
    ov_free(info->exec_type);
    info->exec_type = joined;
    return true;
}

static void
on_row(void *ctx, const struct xm_profile_row *row)
{
    struct infos *l = ctx;
    enum { NS = 1000 };
    if (l->failed || row->step == XM_PROFILE_NO_STEP)
        return;
    if (l->list.size == 0 || row->step != l->step)
        l->failed = !add_info(l, row);
    else
        l->failed = !add_kernel(&l->list.profiling_infos[l->list.size - 1], row->kernel);
    if (l->failed)
        return;
    ov_profiling_info_t *info = &l->list.profiling_infos[l->list.size - 1];
    l->ns += row->ns;
    info->real_time = (int64_t)((l->ns + NS / 2) / NS);
    info->cpu_time = row->on_host ? info->real_time : 0;
}

static void
read_infos(struct xm_infer *r, struct infos *out, struct xm_error *err)
{
    if (r->ops->profile)
        r->ops->profile->rows(r, on_row, out, err);
    else
        xm_fail(err, XM_UNSUPPORTED, "this device does not measure its steps");
}

ov_status_e
ov_infer_request_get_profiling_info(const ov_infer_request_t *infer_request,
                                    ov_profiling_info_list_t *profiling_infos)
{
    if (!infer_request || !profiling_infos)
        return INVALID_C_PARAM;
    if (!xm_api_request_lock(infer_request))
        return REQUEST_BUSY;
    struct infos infos = {0};
    struct xm_error err = {0};
    read_infos(infer_request->infer, &infos, &err);
    xm_api_request_unlock(infer_request);
    if (infos.failed)
        xm_fail(&err, XM_NO_MEMORY, "out of memory for a profile");
    if (err.status == XM_OK)
        *profiling_infos = infos.list;
    else
        ov_profiling_info_list_free(&infos.list);
    return xm_api_error(&err);
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
