/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: creation, states, profiling.
 */
#include "plugin/api/api.h"
#include "xemoe/xemoe.h"

static enum xm_status
create_parts(ov_infer_request_t *r, struct xm_compiled *c, struct xm_error *err)
{
    r->inputs = xm_calloc(c->ports.n_inputs, sizeof(ov_tensor_t *));
    r->outputs = xm_calloc(c->ports.n_outputs, sizeof(ov_tensor_t *));
    r->bound = xm_calloc(c->ports.n_inputs, sizeof(ov_tensor_t *));
    r->is_stale = xm_calloc(c->ports.n_outputs, sizeof(bool));
    if (!r->inputs || !r->outputs || !r->bound || !r->is_stale)
        return xm_no_memory(err, "the tensors of a request");
    XM_TRY(xm_api_runner_create(&r->runner, err));
    return xm_compiled_create_request(c, &r->infer, err);
}

static void
drop_tensors(ov_tensor_t **list, uint32_t n)
{
    for (uint32_t i = 0; list && i < n; i++)
        xm_mapping_unref(list[i] ? &list[i]->base : NULL);
    xm_free(list);
}

static void
destroy_request(ov_infer_request_t *r)
{
    xm_api_runner_destroy(r->runner);
    const struct xm_ports *ports = r->infer ? &r->infer->compiled->ports : NULL;
    const uint32_t n_inputs = ports ? ports->n_inputs : 0;
    const uint32_t n_outputs = ports ? ports->n_outputs : 0;
    xm_infer_destroy(r->infer); /* before the tensors that it may refer to */
    drop_tensors(r->inputs, n_inputs);
    drop_tensors(r->bound, n_inputs);
    drop_tensors(r->outputs, n_outputs);
    xm_free(r->is_stale);
    xm_free(r);
}

ov_status_e
ov_compiled_model_create_infer_request(const ov_compiled_model_t *compiled_model,
                                       ov_infer_request_t **infer_request)
{
    struct xm_error err = {0};
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !infer_request)
        return xm_api_refuse(__func__);
    ov_infer_request_t *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a request");
    ov_status_e s = create_parts(r, compiled_model->compiled, &err) == XM_OK
                        ? xm_api_new_handle(r, XM_API_REQUEST)
                        : xm_api_error(&err);
    if (s == OK)
        *infer_request = r;
    else
        destroy_request(r);
    return s;
}

void
ov_infer_request_free(ov_infer_request_t *infer_request)
{
    if (xm_api_handle_drop(infer_request, XM_API_REQUEST))
        destroy_request(infer_request);
}

ov_status_e
xm_request_reset_states(ov_infer_request_t *infer_request)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST))
        return xm_api_refuse(__func__);
    if (!xm_api_request_lock(infer_request))
        return REQUEST_BUSY;
    infer_request->infer->ops->reset(infer_request->infer);
    xm_api_request_unlock(infer_request);
    return OK;
}

/* ---- measurements ------------------------------------------------------------------ */

/* The list under construction: one entry for each step, whose kernels arrive in rows. */
struct infos {
    ov_profiling_info_list_t list;
    size_t capacity;
    uint32_t step;         /* number of the last entry's step */
    uint64_t ns;           /* time of the last entry so far */
    const char *precision; /* type that the last entry's step computes in; static */
    bool failed;           /* out of memory: the list will be freed */
};

static bool
add_info(struct infos *l, const struct xm_profile_row *row)
{
    ov_profiling_info_t *list =
        xm_grow(l->list.profiling_infos, &l->capacity, l->list.size + 1, sizeof(*list));
    if (!list)
        return false;
    l->list.profiling_infos = list;
    const bool has_run = row->step_runs > 0;
    ov_profiling_info_t *info = &l->list.profiling_infos[l->list.size++];
    *info = (ov_profiling_info_t){.status = row->runs ? EXECUTED
                                            : has_run ? OPTIMIZED_OUT
                                                      : NOT_RUN,
                                  .node_name = xm_strdup(row->name),
                                  .exec_type = xm_strdup(row->kernel),
                                  .node_type = xm_strdup(row->type)};
    l->step = row->step;
    l->precision = row->precision;
    l->ns = 0;
    return info->node_name && info->exec_type && info->node_type;
}

static bool
add_to_exec_type(ov_profiling_info_t *info, const char *between, const char *more)
{
    struct xm_strbuf text = {0};
    xm_strbuf_printf(&text, "%s%s%s", info->exec_type, between, more);
    char *joined = xm_strbuf_take(&text);
    if (!joined)
        return false;
    ov_free(info->exec_type);
    info->exec_type = joined;
    return true;
}

/* Completes the last entry with the names of its kernels, "moe_route_ref moe_gate_up_vec_f16". A
 * step that launched no kernel has no exec_type. */
static void
end_info(struct infos *l)
{
    if (l->failed || l->list.size == 0)
        return;
    ov_profiling_info_t *info = &l->list.profiling_infos[l->list.size - 1];
    l->failed = info->exec_type[0] ? !add_to_exec_type(info, "_", l->precision)
                                   : !add_to_exec_type(info, "", "undef");
}

static void
on_row(void *ctx, const struct xm_profile_row *row)
{
    struct infos *l = ctx;
    enum { NS = 1000 };
    if (l->failed || row->step == XM_PROFILE_NO_STEP)
        return;
    if (l->list.size == 0 || row->step != l->step) {
        end_info(l);
        l->failed = l->failed || !add_info(l, row);
    } else {
        l->failed = !add_to_exec_type(&l->list.profiling_infos[l->list.size - 1], " ",
                                      row->kernel);
    }
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
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !profiling_infos)
        return xm_api_refuse(__func__);
    if (!xm_api_request_lock(infer_request))
        return REQUEST_BUSY;
    struct infos infos = {0};
    struct xm_error err = {0};
    read_infos(infer_request->infer, &infos, &err);
    xm_api_request_unlock(infer_request);
    end_info(&infos);
    if (infos.failed)
        xm_no_memory(&err, "a profile");
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
