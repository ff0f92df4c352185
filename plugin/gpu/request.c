/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs, chunks and outputs of a request. What happens inside one chunk is in
 * request_run.c, the planning of its buffers in request_plan.c.
 */
#include "plugin/gpu/request.h"

#include <string.h>

#include "plugin/gpu/expert_caches.h"
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
    xm_queue_destroy(r->queue); /* waits: nothing uses the buffers any more */
    for (int i = 0; i < XM_KEPT_PLANS; i++)
        xm_request_free_plan(r, &r->plans[i]);
    for (uint32_t i = 0; i < r->n_blocks; i++)
        xm_pool_release(r->pool, r->blocks[i]);
    xm_free(r->blocks);
    xm_pool_release(r->pool, r->scratch);
    xm_pool_destroy(r->pool);
    xm_kv_rows_free(&r->rows);
    xm_kv_tables_destroy(r->tables);
    xm_free(r->most_past);
    xm_free(r->fresh);
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
    xm_free(r);
    xm_program_unref(p);
}

enum xm_status
xm_request_set_input(struct xm_request *r, uint32_t input, const struct xm_host_tensor *t,
                     struct xm_error *err)
{
    if (input >= r->program->ports.n_inputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no input %u", input);
    static uint8_t nothing[1]; /* an empty tensor is set all the same */
    XM_TRY(xm_port_check(&r->program->ports.inputs[input], t, err));
    r->inputs[input] = *t;
    r->inputs[input].data = t->data ? t->data : nothing;
    xm_buffer_unref(r->remote_inputs[input].buffer);
    r->remote_inputs[input].buffer = NULL;
    return XM_OK;
}

/* ---- cutting a prompt ---- */

/* Copies [from, from + count) of axis `axis` of src into dst (its dims are src's but
 * there). */
static void
copy_range(const struct xm_host_tensor *src, struct xm_host_tensor *dst, uint32_t axis,
           int64_t src_from, int64_t dst_from, int64_t count)
{
    uint64_t inner = xm_element_bits(src->element) / 8, outer = 1;
    for (uint32_t i = axis + 1; i < src->rank; i++)
        inner *= (uint64_t)src->dim[i];
    for (uint32_t i = 0; i < axis; i++)
        outer *= (uint64_t)src->dim[i];
    for (uint64_t o = 0; o < outer; o++) {
        const uint8_t *s = (const uint8_t *)src->data +
                           (o * (uint64_t)src->dim[axis] + (uint64_t)src_from) * inner;
        uint8_t *d = (uint8_t *)dst->data +
                     (o * (uint64_t)dst->dim[axis] + (uint64_t)dst_from) * inner;
        memcpy(d, s, (size_t)((uint64_t)count * inner));
    }
}

/* The first axis that depends on `tokens`; rank when none does. */
static uint32_t
token_axis(const struct xm_port *port)
{
    uint32_t i = 0;
    while (i < port->type.shape.rank &&
           !xm_dim_has_symbol(port->type.shape.dim[i], XM_SYMBOL_TOKENS))
        i++;
    return i;
}

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

/* [from, from + count) of axis `axis` of `whole`: a stretch of its bytes where no axis before has
 * more than one row, as with one sequence; else a copy in `cut`. */
static enum xm_status
cut_input(const struct xm_host_tensor *whole, uint32_t axis, int64_t from, int64_t count,
          struct xm_host_tensor *cut, struct xm_host_tensor *part, struct xm_error *err)
{
    uint64_t inner = xm_element_bits(whole->element) / 8;
    bool one_stretch = true;
    for (uint32_t i = 0; i < axis; i++)
        one_stretch &= whole->dim[i] == 1;
    for (uint32_t i = axis + 1; i < whole->rank; i++)
        inner *= (uint64_t)whole->dim[i];
    *part = *whole;
    part->dim[axis] = count;
    if (one_stretch) {
        part->data = (uint8_t *)whole->data + (uint64_t)from * inner;
        part->bytes = (uint64_t)count * inner;
        return XM_OK;
    }
    part->data = cut->data;
    part->bytes = cut->bytes;
    enum xm_status s = xm_request_resize(part, err);
    cut->data = part->data;
    cut->bytes = part->bytes;
    if (s == XM_OK)
        copy_range(whole, part, axis, from, 0, count);
    return s;
}

/* The inputs of the chunk: axes of `tokens` are cut, axes of past + tokens end behind it. */
static enum xm_status
cut_inputs(struct xm_request *r, int64_t at, int64_t n, int64_t past,
           struct xm_error *err)
{
    const struct xm_program *p = r->program;
    for (uint32_t i = 0; i < p->ports.n_inputs; i++) {
        const struct xm_host_tensor *whole = &r->inputs[i];
        uint32_t axis = token_axis(&p->ports.inputs[i]);
        r->chunk[i] = *whole;
        if (axis >= whole->rank)
            continue;
        bool per_token =
            xm_dim_is_symbol(p->ports.inputs[i].type.shape.dim[axis], XM_SYMBOL_TOKENS);
        XM_TRY(cut_input(whole, axis, per_token ? at : 0, per_token ? n : past + at + n,
                         &r->cut[i], &r->chunk[i], err));
    }
    return XM_OK;
}

/* ---- outputs ---- */

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

/* The rows of the chunk's tokens go to their place in the whole result. */
static enum xm_status
read_rows(struct xm_request *r, uint32_t i, int64_t at, int64_t tokens,
          struct xm_error *err)
{
    struct xm_result *result = &r->results[i];
    const uint32_t axis = token_axis(&r->program->ports.outputs[i]);
    const struct xm_operand o = xm_request_describe_result(r, i);
    struct xm_host_tensor part = result->tensor;
    part.data = NULL;
    part.bytes = 0;
    result->tensor.dim[axis] = tokens;
    XM_TRY(xm_request_resize(&result->tensor, err));
    XM_TRY(xm_request_resize(&part, err));
    enum xm_status s = xm_request_read(r, &o, part.data, err);
    if (s == XM_OK)
        copy_range(&part, &result->tensor, axis, 0, at, part.dim[axis]);
    xm_free(part.data);
    result->state = XM_RESULT_READ;
    return s;
}

/* Results with a row for each token lie on the device until the next chunk only. */
static enum xm_status
collect_chunk(struct xm_request *r, int64_t at, int64_t tokens, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    for (uint32_t i = 0; i < p->ports.n_outputs && !xm_engine_only_counts(p->engine);
         i++) {
        if (token_axis(&p->ports.outputs[i]) < p->ports.outputs[i].type.shape.rank)
            XM_TRY(read_rows(r, i, at, tokens, err));
    }
    return XM_OK;
}

/* The run has ended when this returns. What nobody has read of earlier runs stays on the device
 * until somebody does. */
static enum xm_status
collect(struct xm_request *r, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    bool has_waited = false; /* for all that was enqueued so far */
    const uint32_t n = xm_engine_only_counts(p->engine) ? 0 : p->ports.n_outputs;
    for (uint32_t i = 0; i < n; i++) {
        if (r->results[i].state == XM_RESULT_NONE)
            r->results[i].state = XM_RESULT_ON_DEVICE;
        else /* in chunks */
            has_waited = true;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct xm_result *result = &r->results[i];
        if (r->remote_outputs[i].buffer) {
            XM_TRY(xm_request_deliver(r, i, err));
            has_waited = false;
        }
        if (result->state == XM_RESULT_READ || !result->is_asked_for)
            continue;
        XM_TRY(read_result(r, i, err));
        has_waited |= result->tensor.bytes > 0;
    }
    return has_waited ? XM_OK : xm_queue_finish(r->queue, err);
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

/* How long a dimension of a state on the host is: as in the last run, before the first one as the
 * initial value has it, which has none where nothing says how many. */
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

/* Symbols that only states on the host have: of those that grow, say. */
static enum xm_status
bind_states(struct xm_request *r, struct xm_error *err)
{
    for (const struct xm_state_read *s = r->program->state_reads; s; s = s->next)
        XM_TRY(bind_state(r, s->node, err));
    return XM_OK;
}

static enum xm_status
bind(struct xm_request *r, const struct xm_host_tensor *inputs, struct xm_error *err)
{
    r->bindings.n = 0;
    if (r->program->n_kv || r->program->host_states)
        XM_TRY(xm_bindings_set(&r->bindings, XM_SYMBOL_PAST, (int64_t)xm_request_past(r),
                               err));
    XM_TRY(xm_bindings_from_ports(&r->bindings, r->program->ports.inputs, inputs,
                                  r->program->ports.n_inputs, err));
    return bind_states(r, err);
}

/* Tokens of each sequence that are run at once, so that those of all are XM_UBATCH at most. */
static int64_t
tokens_at_once(const struct xm_request *r)
{
    int64_t ubatch = (int64_t)r->program->config.ubatch, batch = 1;
    xm_bindings_find(&r->bindings, XM_SYMBOL_BATCH, &batch);
    return batch < 1 ? ubatch : ubatch > batch ? ubatch / batch : 1;
}

static enum xm_status
infer_chunks(struct xm_request *r, int64_t tokens, struct xm_error *err)
{
    int64_t past = (int64_t)xm_request_past(r), most = tokens_at_once(r), n;
    for (int64_t at = 0; at < tokens; at += n) {
        n = tokens - at < most ? tokens - at : most;
        r->watch.done = (uint64_t)at;
        r->watch.all = (uint64_t)tokens;
        XM_TRY(cut_inputs(r, at, n, past, err));
        XM_TRY(bind(r, r->chunk, err));
        XM_TRY(xm_request_run_chunk(r, r->chunk, err));
        XM_TRY(collect_chunk(r, at, tokens, err));
        if (at + n < tokens) {
            XM_TRY(xm_queue_finish(r->queue, err));
            xm_kv_rows_commit(&r->rows);
        }
    }
    return collect(r, err);
}

static void
forget_results(struct xm_request *r)
{
    for (uint32_t i = 0; i < r->program->ports.n_outputs; i++)
        r->results[i].state = XM_RESULT_NONE;
}

/* A run has failed: nothing of it stays in the queue, no position in the states. States on
 * the host cannot be cut. */
static void
give_up(struct xm_request *r)
{
    xm_queue_finish(r->queue, NULL);
    xm_kv_rows_end(&r->rows, false);
    if (r->program->kv_pool)
        xm_kv_pool_expect_none(r->program->kv_pool);
    forget_results(r);
    if (r->program->host_states)
        xm_request_reset(r);
}

/* All of a prompt's pages at once, not a slab for some and a larger one for the next. */
static void
expect(const struct xm_request *r, uint64_t tokens)
{
    int64_t batch = 1;
    xm_bindings_find(&r->bindings, XM_SYMBOL_BATCH, &batch);
    if (r->program->kv_pool)
        xm_kv_pool_expect(r->program->kv_pool, (uint64_t)batch, tokens);
}

/* beam_idx as int32, checked for length by the bindings. */
static enum xm_status
begin_rows(struct xm_request *r, bool in_parts, struct xm_error *err)
{
    const struct xm_host_tensor *beams =
        xm_request_input_named(r, r->inputs, r->program->beam_idx);
    int64_t batch = 1;
    int32_t *idx = NULL;
    xm_bindings_find(&r->bindings, XM_SYMBOL_BATCH, &batch);
    if (beams) {
        idx = xm_malloc((size_t)(batch + 1) * sizeof(*idx));
        if (!idx)
            return xm_no_memory(err, "the beam index");
        for (int64_t b = 0; b < batch; b++)
            idx[b] = (int32_t)xm_load_int(beams->element, beams->data, (uint64_t)b);
    }
    const enum xm_status s =
        xm_kv_rows_begin(&r->rows, (uint32_t)batch, idx, in_parts, err);
    xm_free(idx);
    return s;
}

static enum xm_status
run_all(struct xm_request *r, struct xm_error *err)
{
    struct xm_program *p = r->program;
    int64_t tokens = 0;
    bool known = xm_bindings_find(&r->bindings, XM_SYMBOL_TOKENS, &tokens);
    const bool in_parts = known && p->can_chunk && p->chosen_rows == XM_NO_VALUE &&
                          tokens > tokens_at_once(r);
    XM_TRY(xm_request_read_mask(r, err));
    if (in_parts || r->is_packed)
        XM_TRY(xm_request_fetch_inputs(r, true, err));
    if (r->tables)
        XM_TRY(begin_rows(r, in_parts || r->is_packed, err));
    if (r->is_packed) {
        XM_TRY(xm_request_run_packed(r, err));
        return collect(r, err);
    }
    if (in_parts)
        expect(r, (uint64_t)tokens);
    if (in_parts)
        return infer_chunks(r, tokens, err);
    r->watch.done = 0;
    r->watch.all = known ? (uint64_t)tokens : 0;
    XM_TRY(xm_request_run_chunk(r, r->inputs, err));
    return collect(r, err);
}

enum xm_status
xm_request_begin_work(struct xm_request *r, struct xm_request_work *w,
                      struct xm_error *err)
{
    xm_queue_counts(r->queue, &w->waits, &w->kernels);
    return xm_expert_caches_take(r->program, r->queue, &r->has_caches, err);
}

void
xm_request_end_work(struct xm_request *r, const struct xm_request_work *w,
                    bool has_succeeded)
{
    xm_queue_counts(r->queue, &r->stats.waits, &r->stats.kernels);
    r->stats.waits -= w->waits;
    r->stats.kernels -= w->kernels;
    if (r->has_caches)
        xm_expert_caches_give_back(r->program, has_succeeded);
    r->has_caches = false;
}

/* Nothing of the run is left in the queue afterwards: it has been waited for, or was given up. */
static enum xm_status
run_once(struct xm_request *r, struct xm_error *err)
{
    struct xm_request_work work;
    XM_TRY(bind(r, r->inputs, err));
    forget_results(r);
    enum xm_status s = xm_request_begin_work(r, &work, err);
    if (s == XM_OK)
        s = run_all(r, err);
    if (s == XM_OK)
        xm_kv_rows_end(&r->rows, true);
    else
        give_up(r);
    xm_request_end_work(r, &work, s == XM_OK);
    return s;
}

enum xm_status
xm_request_infer(struct xm_request *r, struct xm_error *err)
{
    struct xm_program *p = r->program;
    struct xm_error cause = {0};
    /* A run that fails leaves nothing of states on the host: it cannot be made again on them. */
    bool again = !p->host_states || xm_request_past(r) == 0;
    XM_TRY(xm_request_fetch_inputs(r, false, err));
    for (uint32_t i = 0; i < p->ports.n_inputs; i++) {
        if (!r->inputs[i].data && !r->remote_inputs[i].buffer)
            return xm_fail(err, XM_INVALID, "input '%s' has not been set",
                           p->ports.inputs[i].name);
        XM_TRY(xm_port_check_rows(&p->ports.inputs[i], &r->inputs[i], err));
    }
    enum xm_status s = run_once(r, &cause);
    if (s == XM_NO_MEMORY && xm_expert_caches_drop(p) && again) {
        cause = (struct xm_error){0};
        s = run_once(r, &cause);
    }
    return s == XM_OK ? s : xm_fail(err, s, "%s", cause.text);
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
