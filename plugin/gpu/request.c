/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs and outputs of a request, and the rows of a run. Other files: intake.h cuts rows into
 * chunks, request_intake.c runs the chunks, request_run.c runs the steps of one chunk, and
 * request_plan.c plans its buffers.
 */
#include "plugin/gpu/request.h"

#include <string.h>

#include "plugin/gpu/request_run.h"
#include "transformations/graph/symbols.h"

enum xm_status
xm_request_create(struct xm_program *p, struct xm_request **out, struct xm_error *err)
{
    struct xm_request *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_no_memory(err, "a request");
    r->program = p;
    xm_program_ref(p);
    r->inputs = xm_calloc(p->ports.n_inputs + 1, sizeof(*r->inputs));
    r->chunk = xm_calloc(p->ports.n_inputs + 1, sizeof(*r->chunk));
    r->cut = xm_calloc(p->ports.n_inputs + 1, sizeof(*r->cut));
    r->results = xm_calloc(p->ports.n_outputs + 1, sizeof(*r->results));
    r->remote_inputs = xm_calloc(p->ports.n_inputs + 1, sizeof(*r->remote_inputs));
    r->remote_outputs = xm_calloc(p->ports.n_outputs + 1, sizeof(*r->remote_outputs));
    r->sizes = xm_calloc(p->n_values + 1, sizeof(*r->sizes));
    if (p->config.profiling)
        r->sums = xm_calloc(p->n_steps + 1, sizeof(*r->sums));
    enum xm_status s = XM_OK;
    if (!r->inputs || !r->chunk || !r->cut || !r->results || !r->sizes ||
        !r->remote_inputs || !r->remote_outputs || (p->config.profiling && !r->sums))
        s = xm_no_memory(err, "a request");
    if (s == XM_OK)
        s = xm_pool_create(p->engine, 0, &r->pool, err);
    xm_kv_rows_init(&r->rows, p->kv_pool);
    r->can_pack = xm_request_can_pack(p);
    if (s == XM_OK && p->kv_pool)
        s = xm_kv_tables_create(p->kv_pool, &r->tables, err);
    if (s == XM_OK)
        s = xm_queue_create(p->engine, &r->queue, err);
    if (s == XM_OK && p->step_times)
        xm_queue_share_times(r->queue, p->step_times);
    if (s == XM_OK && p->n_host_steps) {
        r->states = xm_state_store_create();
        if (!r->states)
            s = xm_no_memory(err, "the states");
    }
    if (s != XM_OK) {
        xm_request_destroy(r);
        return s;
    }
    *out = r;
    return XM_OK;
}

void
xm_request_destroy(struct xm_request *r)
{
    if (!r)
        return;
    struct xm_program *p = r->program;
    xm_queue_destroy(r->queue); /* waits, so that no command uses the buffers any more */
    for (int i = 0; i < XM_KEPT_PLANS; i++)
        xm_request_free_plan(r, &r->plans[i]);
    for (uint32_t i = 0; i < r->n_blocks; i++)
        xm_pool_release(r->pool, r->blocks[i]);
    xm_free(r->blocks);
    xm_kept_views_free(&r->views);
    xm_pool_release(r->pool, r->scratch);
    xm_pool_destroy(r->pool);
    xm_kv_rows_free(&r->rows);
    xm_kv_tables_destroy(r->tables);
    xm_free(r->most_past);
    xm_intake_free(&r->intake);
    xm_free(r->mask.data);
    xm_state_store_destroy(r->states);
    for (uint32_t i = 0; r->results && i < p->ports.n_outputs; i++)
        xm_free(r->results[i].tensor.data);
    for (uint32_t i = 0; r->cut && i < p->ports.n_inputs; i++)
        xm_free(r->cut[i].data);
    xm_request_free_remote(r);
    xm_free(r->inputs);
    xm_free(r->chunk);
    xm_free(r->cut);
    xm_free(r->results);
    xm_free(r->sizes);
    xm_free(r->sums);
    for (size_t i = 0; i < XM_ARRAY_LEN(r->exchanges); i++)
        xm_free(r->exchanges[i].bytes);
    xm_free(r);
    xm_program_unref(p);
}

enum xm_status
xm_request_set_input(struct xm_request *r, uint32_t input, const struct xm_host_tensor *t,
                     struct xm_error *err)
{
    if (input >= r->program->ports.n_inputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no input %u", input);
    static uint8_t nothing[1]; /* data of empty tensors, because NULL means "not set" */
    XM_TRY(xm_port_check(&r->program->ports.inputs[input], t, err));
    r->inputs[input] = *t;
    r->inputs[input].data = t->data ? t->data : nothing;
    xm_buffer_unref(r->remote_inputs[input].buffer);
    r->remote_inputs[input].buffer = NULL;
    return XM_OK;
}

/* ---- outputs ---- */

enum xm_status
xm_request_resize(struct xm_host_tensor *t, struct xm_error *err)
{
    uint64_t n = 1, bytes = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= (uint64_t)t->dim[i];
    if (!xm_element_bytes(t->element, n, &bytes))
        return xm_fail(err, XM_INVALID, "a tensor of %llu elements",
                       (unsigned long long)n);
    if (!t->data || bytes > t->bytes) {
        void *data = xm_realloc(t->data, (size_t)(bytes ? bytes : 1));
        if (!data)
            return xm_no_memory(err, "%llu bytes of a tensor", (unsigned long long)bytes);
        t->data = data;
    }
    t->bytes = bytes;
    return XM_OK;
}

enum xm_status
xm_request_read(struct xm_request *r, const struct xm_operand *o, void *out,
                struct xm_error *err)
{
    uint64_t bytes = 0;
    if (!xm_element_bytes(o->element, xm_operand_elements(o), &bytes))
        return xm_fail(err, XM_INVALID, "an operand without a size");
    return bytes ? xm_queue_read(r->queue, o->buffer, 0, out, bytes, err) : XM_OK;
}

struct xm_operand
xm_request_describe_result(struct xm_request *r, uint32_t i)
{
    struct xm_host_tensor *t = &r->results[i].tensor;
    struct xm_operand o;
    xm_request_operand(r, r->program->output_values[i], &o);
    t->element = o.element;
    t->rank = o.rank;
    memcpy(t->dim, o.dim, sizeof(t->dim));
    return o;
}

static enum xm_status
read_result(struct xm_request *r, uint32_t i, struct xm_error *err)
{
    struct xm_result *result = &r->results[i];
    const struct xm_operand o = xm_request_describe_result(r, i);
    XM_TRY(xm_request_resize(&result->tensor, err));
    XM_TRY(xm_request_read(r, &o, result->tensor.data, err));
    result->state = XM_RESULT_READ;
    return XM_OK;
}

enum xm_status
xm_request_collect(struct xm_request *r, bool *has_waited, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    const uint32_t n = xm_engine_only_counts(p->engine) ? 0 : p->ports.n_outputs;
    for (uint32_t i = 0; i < n; i++) {
        if (r->results[i].state == XM_RESULT_NONE)
            r->results[i].state = XM_RESULT_ON_DEVICE;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct xm_result *result = &r->results[i];
        if (r->remote_outputs[i].buffer) {
            XM_TRY(xm_request_deliver(r, i, err));
            *has_waited = false;
        }
        if (result->state == XM_RESULT_READ || !result->is_asked_for)
            continue;
        XM_TRY(read_result(r, i, err));
        *has_waited |= result->tensor.bytes > 0;
    }
    return XM_OK;
}

static enum xm_status
fail_unset(const struct xm_request *r, uint32_t output, struct xm_error *err)
{
    return xm_fail(err, XM_INVALID, "output '%s' has no value before a run that succeeds",
                   r->program->ports.outputs[output].name);
}

enum xm_status
xm_request_output(struct xm_request *r, uint32_t output, struct xm_host_tensor *t,
                  struct xm_error *err)
{
    if (output >= r->program->ports.n_outputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no output %u", output);
    struct xm_result *result = &r->results[output];
    result->is_asked_for = true;
    if (result->state == XM_RESULT_NONE)
        return fail_unset(r, output, err);
    if (result->state == XM_RESULT_ON_DEVICE)
        XM_TRY(read_result(r, output, err));
    *t = result->tensor;
    return XM_OK;
}

enum xm_status
xm_request_describe_output(struct xm_request *r, uint32_t output,
                           struct xm_host_tensor *t, struct xm_error *err)
{
    if (output >= r->program->ports.n_outputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no output %u", output);
    struct xm_result *result = &r->results[output];
    if (result->state == XM_RESULT_NONE)
        return fail_unset(r, output, err);
    if (result->state == XM_RESULT_ON_DEVICE)
        xm_request_describe_result(r, output);
    *t = result->tensor;
    t->data = NULL;
    return XM_OK;
}

/* ---- runs ---- */

/* Returns the size of an axis of a state on the host: that of the state after the last run; before
 * the first run that of its initial value, or 0 if there is no such value or its size is not
 * known. */
static int64_t
state_size(const struct xm_request *r, const struct xm_node *read, uint32_t axis)
{
    const struct xm_tensor *state = xm_state_get(r->states, read->attr.name.name);
    int64_t n = 0;
    if (state)
        return axis < state->rank ? state->dim[axis] : 0;
    if (read->n_in && axis < xm_in(read, 0)->type.shape.rank)
        xm_dim_eval(xm_in(read, 0)->type.shape.dim[axis], r->bindings.list, r->bindings.n,
                    &n, NULL);
    return n;
}

static enum xm_status
bind_state(struct xm_request *r, const struct xm_node *read, struct xm_error *err)
{
    const struct xm_shape *s = &read->out[0].type.shape;
    for (uint32_t i = 0; i < s->rank; i++) {
        const char *symbol =
            xm_dim_symbols(s->dim[i]) ? xm_dim_symbol_name(s->dim[i], 0) : NULL;
        int64_t bound;
        if (symbol && xm_dim_is_symbol(s->dim[i], symbol) &&
            !xm_bindings_find(&r->bindings, symbol, &bound))
            XM_TRY(xm_bindings_set(&r->bindings, symbol, state_size(r, read, i), err));
    }
    return XM_OK;
}

/* Binds the symbols that occur only in the shapes of states on the host, such as the length of a
 * state that grows. */
static enum xm_status
bind_states(struct xm_request *r, struct xm_error *err)
{
    for (const struct xm_state_read *s = r->program->state_reads; s; s = s->next)
        XM_TRY(bind_state(r, s->node, err));
    return XM_OK;
}

enum xm_status
xm_request_bind(struct xm_request *r, const struct xm_host_tensor *inputs, uint64_t past,
                struct xm_error *err)
{
    r->bindings.n = 0;
    if (r->program->kv_pool)
        XM_TRY(xm_bindings_set(&r->bindings, XM_SYMBOL_PAST, (int64_t)past, err));
    XM_TRY(xm_bindings_from_ports(&r->bindings, r->program->ports.inputs, inputs,
                                  r->program->ports.n_inputs, err));
    return bind_states(r, err);
}

/* Begins the run's rows, which continue the rows that the input beam_idx says. The bindings of
 * symbols have checked that beam_idx has `batch` elements. */
static enum xm_status
begin_rows(struct xm_request *r, uint32_t batch, struct xm_error *err)
{
    const struct xm_host_tensor *beams =
        xm_request_input_named(r, r->inputs, r->program->beam_idx);
    int32_t *idx = NULL;
    if (beams) {
        idx = xm_malloc(((size_t)batch + 1) * sizeof(*idx));
        if (!idx)
            return xm_no_memory(err, "the beam index");
        for (uint32_t b = 0; b < batch; b++)
            idx[b] = (int32_t)xm_load_int(beams->element, beams->data, b);
    }
    const enum xm_status s = xm_kv_rows_begin(&r->rows, batch, idx, err);
    xm_free(idx);
    return s;
}

/* Makes the intake of the inputs' tensors: rows of equal length, which may begin with padding. */
static enum xm_status
take_inputs(struct xm_request *r, struct xm_error *err)
{
    int64_t tokens = 0, batch = 1;
    xm_bindings_find(&r->bindings, XM_SYMBOL_TOKENS, &tokens);
    xm_bindings_find(&r->bindings, XM_SYMBOL_BATCH, &batch);
    if (r->tables)
        XM_TRY(begin_rows(r, (uint32_t)batch, err));
    XM_TRY(xm_intake_of_tensors(&r->intake, r->program, r->inputs, (uint64_t)tokens,
                                r->rows.list, r->rows.n, err));
    XM_TRY(xm_request_read_mask(r, err));
    return xm_intake_is_cut(&r->intake) ? xm_request_fetch_inputs(r, true, err) : XM_OK;
}

enum xm_status
xm_request_infer(struct xm_request *r, struct xm_error *err)
{
    const struct xm_ports *ports = &r->program->ports;
    XM_TRY(xm_request_fetch_inputs(r, false, err));
    for (uint32_t i = 0; i < ports->n_inputs; i++) {
        if (!r->inputs[i].data && !r->remote_inputs[i].buffer)
            return xm_fail(err, XM_INVALID, "input '%s' has not been set",
                           ports->inputs[i].name);
        XM_TRY(xm_port_check_rows(&ports->inputs[i], &r->inputs[i], err));
    }
    XM_TRY(xm_request_bind(r, r->inputs, xm_request_past(r), err));
    enum xm_status s = take_inputs(r, err);
    if (s == XM_OK)
        s = xm_request_run(r, &r->intake, err);
    xm_kv_rows_end(&r->rows, s == XM_OK);
    if (s != XM_OK)
        xm_request_forget_results(r);
    if (s != XM_OK && r->program->host_states)
        xm_request_reset(r);
    return s;
}

struct xm_run_counts
xm_request_counts(const struct xm_request *r)
{
    struct xm_run_counts c = {.weight_bytes = r->stats.weight_bytes,
                              .multiply_adds = r->stats.multiply_adds};
    xm_queue_counts(r->queue, &c.waits, &c.kernels);
    return c;
}

struct xm_run_counts
xm_request_take_back(struct xm_request *r, const struct xm_run_counts *before)
{
    const struct xm_run_counts now = xm_request_counts(r);
    r->stats.weight_bytes = before->weight_bytes;
    r->stats.multiply_adds = before->multiply_adds;
    return (struct xm_run_counts){now.kernels - before->kernels,
                                  now.waits - before->waits,
                                  now.weight_bytes - before->weight_bytes,
                                  now.multiply_adds - before->multiply_adds};
}

void
xm_request_add(struct xm_request *r, const struct xm_run_counts *run)
{
    r->stats.kernels = run->kernels;
    r->stats.waits = run->waits;
    r->stats.weight_bytes += run->weight_bytes;
    r->stats.multiply_adds += run->multiply_adds;
}

void
xm_request_reset(struct xm_request *r)
{
    xm_kv_rows_reset(&r->rows);
    if (r->states)
        xm_state_store_reset(r->states);
}

void
xm_request_truncate(struct xm_request *r, uint64_t past)
{
    if (past >= xm_request_past(r))
        return;
    if (r->program->host_states)
        xm_request_reset(r);
    else
        xm_kv_rows_truncate(&r->rows, past);
}

uint64_t
xm_request_past(const struct xm_request *r)
{
    return xm_kv_rows_past(&r->rows);
}

void
xm_request_enqueue_counted(struct xm_request *r)
{
    r->enqueues_counted = true;
}

enum xm_status
xm_request_count_work(struct xm_request *r, struct xm_error *err)
{
    if (!r->sums)
        r->sums = xm_calloc(r->program->n_steps + 1, sizeof(*r->sums));
    return r->sums ? XM_OK : xm_no_memory(err, "a request's counts");
}

void
xm_request_watch(struct xm_request *r, xm_tokens_fn fn, void *ctx)
{
    r->watch.fn = fn;
    r->watch.ctx = ctx;
}

void
xm_request_cancel(struct xm_request *r)
{
    xm_flag_set(&r->cancelled, true);
}

void
xm_request_resume(struct xm_request *r)
{
    xm_flag_set(&r->cancelled, false);
}

void
xm_request_set_hook(struct xm_request *r, xm_step_hook hook, void *ctx)
{
    r->hook = hook;
    r->hook_ctx = ctx;
}

struct xm_program *
xm_request_program(struct xm_request *r)
{
    return r->program;
}

const struct xm_binding *
xm_request_bindings(const struct xm_request *r, uint32_t *n)
{
    *n = r->bindings.n;
    return r->bindings.list;
}

void
xm_request_stats(const struct xm_request *r, struct xm_request_stats *out)
{
    *out = r->stats;
    out->kv_bytes = r->program->kv_pool ? xm_kv_pool_bytes(r->program->kv_pool) : 0;
    out->activation_bytes = xm_request_activation_bytes(r);
    for (int i = 0; i < XM_KEPT_PLANS; i++)
        out->io_bytes += r->plans[i].io_bytes;
}
