/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one chunk: writes its inputs and the tables of its sequences, and enqueues every step in
 * order.
 */
#include "plugin/gpu/request_run.h"
#include "plugin/lower/step_work.h"

#include <string.h>

#include "primitives/form.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "transformations/graph/symbols.h"

/* ---- before the steps ----------------------------------------------------------- */

const struct xm_host_tensor *
xm_request_input_named(const struct xm_request *r, const struct xm_host_tensor *inputs,
                       const char *name)
{
    for (uint32_t i = 0; name && i < r->program->ports.n_inputs; i++) {
        if (strcmp(r->program->ports.inputs[i].name, name) == 0)
            return &inputs[i];
    }
    return NULL;
}

static enum xm_status
write_inputs(struct xm_request *r, const struct xm_host_tensor *inputs,
             struct xm_error *err)
{
    const struct xm_program *p = r->program;
    const struct xm_host_tensor *mask = xm_request_input_named(r, inputs, p->key_mask);
    for (uint32_t i = 0; i < p->ports.n_inputs; i++) {
        uint32_t v = p->input_values[i];
        const struct xm_host_tensor *t = &inputs[i];
        if (!t->data || t->bytes == 0 || p->values[v].first == UINT32_MAX)
            continue;
        if (t == mask && !r->mask_is_full)
            XM_TRY(xm_request_shift_mask(r, mask, &t, err));
        XM_TRY(xm_queue_write(r->queue, r->plan->views[v], 0, t->data, t->bytes, err));
    }
    return XM_OK;
}

/* Enqueues copies of the inputs that are only in remote tensors. Called after the host has written
 * the other inputs: these writes need no wait while the queue is empty. */
static enum xm_status
copy_inputs(struct xm_request *r, const struct xm_host_tensor *inputs,
            struct xm_error *err)
{
    const struct xm_program *p = r->program;
    for (uint32_t i = 0; i < p->ports.n_inputs; i++) {
        const uint32_t v = p->input_values[i];
        if (!inputs[i].data && inputs[i].bytes && p->values[v].first != UINT32_MAX)
            XM_TRY(xm_request_copy_input(r, i, err));
    }
    return XM_OK;
}

static enum xm_status
write_shape_values(struct xm_request *r, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct xm_program_value *v = &p->values[i];
        int64_t bytes[XM_MAX_CONTENT];
        if (v->place != XM_PLACE_SHAPE || v->first == UINT32_MAX)
            continue;
        for (uint32_t d = 0; d < v->n_dims; d++) {
            int64_t n = 0;
            XM_TRY(xm_dim_eval(v->dims[d], r->bindings.list, r->bindings.n, &n, err));
            xm_store_int(v->element, bytes, d, n);
        }
        XM_TRY(xm_queue_write(r->queue, r->plan->views[i], 0, bytes,
                              v->n_dims * (xm_element_bits(v->element) / 8), err));
    }
    return XM_OK;
}

/* ---- steps ---------------------------------------------------------------------- */

static enum xm_status
copy_parts(struct xm_request *r, const struct xm_step *s, struct xm_error *err)
{
    bool is_concat = s->copy == XM_COPY_CONCAT;
    const uint32_t axis = (uint32_t)s->ints[0], n = is_concat ? s->n_in : s->n_out;
    int64_t at = 0;
    struct xm_operand o[XM_COPY_N_OPERANDS];
    struct xm_run run = {.queue = r->queue};
    for (uint32_t i = 0; i < n; i++) {
        struct xm_copy_space space;
        xm_request_operand(r, s->in[is_concat ? i : 0], &o[XM_COPY_SRC]);
        xm_request_operand(r, s->out[is_concat ? 0 : i], &o[XM_COPY_DST]);
        const struct xm_operand *p = is_concat ? &o[XM_COPY_SRC] : &o[XM_COPY_DST];
        if (xm_operand_elements(p) == 0)
            continue;
        if (is_concat)
            xm_copy_concat_part(&space, &o[XM_COPY_SRC], &o[XM_COPY_DST], axis, at);
        else
            xm_copy_split_part(&space, &o[XM_COPY_SRC], &o[XM_COPY_DST], axis, at);
        at += p->dim[axis];
        XM_TRY(xm_copy_enqueue(s->primitive, o, &space, &run, err));
    }
    return XM_OK;
}

/* Sets *s to the copy of a TILE, by which dst repeats src. Each axis becomes two: elements and
 * repetitions. The innermost axis comes first; the order does not matter. */
static void
tile_space(struct xm_copy_space *s, const struct xm_operand *src,
           const struct xm_operand *dst)
{
    int64_t src_stride = 1, dst_stride = 1;
    uint32_t lead = dst->rank - src->rank;
    *s = (struct xm_copy_space){0};
    for (uint32_t i = dst->rank; i-- > 0; dst_stride *= dst->dim[i]) {
        int64_t n = i >= lead ? src->dim[i - lead] : 1;
        s->extent[s->rank] = n;
        s->src_stride[s->rank] = src_stride;
        s->dst_stride[s->rank++] = dst_stride;
        s->extent[s->rank] = n ? dst->dim[i] / n : 0;
        s->src_stride[s->rank] = 0;
        s->dst_stride[s->rank++] = dst_stride * n;
        src_stride *= n;
    }
}

static enum xm_status
run_copy(struct xm_request *r, const struct xm_step *s, struct xm_error *err)
{
    struct xm_operand o[XM_COPY_N_OPERANDS];
    struct xm_copy_space space;
    struct xm_run run = {.queue = r->queue};
    if (s->copy == XM_COPY_CONCAT || s->copy == XM_COPY_SPLIT)
        return copy_parts(r, s, err);
    xm_request_operands(r, s, o);
    int64_t start[XM_MAX_RANK];
    uint32_t rank = o[XM_COPY_SRC].rank;
    switch (s->copy) {
    case XM_COPY_TRANSPOSE:
        xm_copy_transpose(&space, &o[XM_COPY_SRC], s->ints);
        break;
    case XM_COPY_SLICE:
        for (uint32_t i = 0; i < rank; i++) {
            int64_t n = o[XM_COPY_SRC].dim[i], last = s->ints[rank + i] < 0 ? n - 1 : n;
            start[i] = s->ints[i] < 0 ? s->ints[i] + n : s->ints[i];
            start[i] = start[i] < 0 ? 0 : start[i] > last ? last : start[i];
        }
        xm_copy_slice(&space, &o[XM_COPY_SRC], &o[XM_COPY_DST], start, s->ints + rank);
        break;
    case XM_COPY_TILE:
        tile_space(&space, &o[XM_COPY_SRC], &o[XM_COPY_DST]);
        break;
    default:
        xm_copy_broadcast(&space, &o[XM_COPY_SRC], &o[XM_COPY_DST]);
        break;
    }
    return xm_copy_enqueue(s->primitive, o, &space, &run, err);
}

/* ---- the loop ------------------------------------------------------------------- */

/* Returns whether all results of a step are empty (no tokens, say), so that it need not run. Host
 * steps always run. */
static bool
is_empty(const struct xm_request *r, const struct xm_step *s)
{
    bool is_empty = s->kind != XM_STEP_HOST;
    for (uint32_t i = 0; i < s->n_operands && is_empty; i++) {
        struct xm_operand o;
        if (s->operand[i].result == XM_NO_VALUE)
            continue;
        xm_request_operand(r, s->operand[i].value, &o);
        is_empty = xm_operand_elements(&o) == 0;
    }
    return is_empty;
}

/* Runs a host step. If times are measured, first waits for the queue, so that the step's time does
 * not include the wait for its operands. */
static enum xm_status
run_host(struct xm_request *r, const struct xm_step *s, struct xm_error *err)
{
    if (!xm_queue_measures(r->queue))
        return xm_request_run_host(r, s, err);
    XM_TRY(xm_queue_finish(r->queue, err));
    const double start = xm_now();
    XM_TRY(xm_request_run_host(r, s, err));
    xm_queue_add_host(r->queue, "host reference", start, xm_now());
    return XM_OK;
}

/* Returns whether the step gathers the rows whose results are wanted (xm_program.chosen_rows), and
 * these are consecutive. */
static bool
takes_stretch(const struct xm_request *r, const struct xm_step *s)
{
    return r->first_chosen != UINT64_MAX && s->n_in == 2 &&
           s->in[1] == r->program->chosen_rows;
}

/* Copies consecutive rows in place of a gather kernel, which saves a launch. */
static enum xm_status
copy_stretch(struct xm_request *r, const struct xm_step *s, struct xm_error *err)
{
    struct xm_operand x, y;
    uint64_t row = 0, bytes = 0;
    xm_request_operand(r, s->in[0], &x);
    xm_request_operand(r, s->out[0], &y);
    const uint64_t rows = xm_operand_rows(&y);
    if (!xm_element_bytes(y.element, xm_operand_elements(&y), &bytes) ||
        r->first_chosen + rows > xm_operand_rows(&x))
        return xm_fail(err, XM_INVALID, "a requested row is outside the result");
    row = bytes / rows;
    return xm_queue_copy(r->queue, x.buffer, r->first_chosen * row, y.buffer, 0, bytes,
                         err);
}

static enum xm_status
run_primitive(struct xm_request *r, const struct xm_step *s, struct xm_error *err)
{
    struct xm_operand o[XM_STEP_OPERANDS];
    struct xm_buffer *slabs[XM_KV_SLABS];
    struct xm_attention_run sequences;
    struct xm_run run = {.queue = r->queue,
                         .scratch = r->scratch,
                         .views = &r->views,
                         .experts = r->has_caches ? s->experts : NULL};
    xm_request_operands(r, s, o);
    if (s->kind == XM_STEP_ATTENTION) {
        sequences = *xm_kv_tables_run(r->tables);
        sequences.slabs = slabs;
        xm_kv_pool_slabs(r->program->kv_pool, s->layer, slabs);
        run.sequences = &sequences;
        if (r->mask_is_full)
            o[XM_ATTENTION_KEY_MASK] = (struct xm_operand){0};
    }
    if (s->cost.bytes) {
        uint64_t rows = xm_operand_rows(&o[s->cost.result]);
        r->stats.weight_bytes += xm_step_weight_bytes(&s->cost, rows);
        r->stats.multiply_adds += rows * s->cost.multiply_adds;
    }
    return xm_primitive_run(s->primitive, o, &run, err);
}

static enum xm_status
run_step(struct xm_request *r, const struct xm_step *s, struct xm_error *err)
{
    if (takes_stretch(r, s))
        return copy_stretch(r, s, err);
    switch (s->kind) {
    case XM_STEP_COPY:
        return run_copy(r, s, err);
    case XM_STEP_HOST:
        return run_host(r, s, err);
    case XM_STEP_COLLECTIVE:
        return xm_request_run_collective(r, s, err);
    case XM_STEP_ATTENTION:
    case XM_STEP_PRIMITIVE:
        break;
    }
    return run_primitive(r, s, err);
}

static enum xm_status
call_hook(struct xm_request *r, uint32_t step, struct xm_error *err)
{
    const struct xm_step *s = &r->program->steps[step];
    struct xm_operand *o = xm_calloc(s->n_operands, sizeof(*o));
    if (!o)
        return xm_no_memory(err, "a step's operands");
    xm_request_operands(r, s, o);
    enum xm_status status = xm_queue_finish(r->queue, err);
    if (status == XM_OK)
        status = r->hook(r, step, o, r->hook_ctx, err);
    xm_free(o);
    return status;
}

/* The steps of a prompt take long, and enqueued steps cannot be cancelled: so the host is at most
 * 2 * PACE steps ahead of the device. The steps of a decoded token are all enqueued at once. */
enum { PACE = 8 };

static enum xm_status
keep_pace(struct xm_request *r, uint32_t step, struct xm_error *err)
{
    const uint32_t n = r->program->n_steps, done = step > PACE ? step - PACE : 0;
    int64_t tokens = 0;
    if (step % PACE != 0 || !xm_bindings_find(&r->bindings, XM_SYMBOL_TOKENS, &tokens) ||
        tokens <= XM_FEW_TOKENS)
        return XM_OK;
    XM_TRY(xm_queue_keep_pace(r->queue, err));
    if (r->watch.fn && r->watch.all)
        r->watch.fn(r->watch.ctx, r->watch.done + (uint64_t)tokens * done / n,
                    r->watch.all);
    return XM_OK;
}

/* Drivers collect commands until they are flushed. The queue is flushed after the first
 * FIRST_LAUNCHES launches of a run, so that the device begins early, and then each time the number
 * of launches has grown by the factor MORE_LAUNCHES. */
enum { FIRST_LAUNCHES = 8, MORE_LAUNCHES = 8 };

static enum xm_status
flush_early(struct xm_request *r, uint64_t before, uint64_t *next, struct xm_error *err)
{
    uint64_t waits, kernels;
    xm_queue_counts(r->queue, &waits, &kernels);
    if (kernels - before < *next)
        return XM_OK;
    *next *= MORE_LAUNCHES;
    return xm_queue_flush(r->queue, err);
}

static enum xm_status
run_steps(struct xm_request *r, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    const bool only_counts = xm_engine_only_counts(p->engine);
    uint64_t waits, kernels, flush_at = FIRST_LAUNCHES;
    if (only_counts && !r->enqueues_counted) { /* a counting engine computes nothing */
        for (uint32_t i = 0; i < p->n_steps && r->sums; i++)
            if (!is_empty(r, &p->steps[i]))
                xm_request_count_step(r, i);
        return XM_OK;
    }
    xm_queue_counts(r->queue, &waits, &kernels);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct xm_recorded_step *recorded = xm_request_recorded(r, &p->steps[i]);
        XM_TRY(keep_pace(r, i, err));
        XM_TRY(flush_early(r, kernels, &flush_at, err));
        if (xm_flag_get(&r->cancelled))
            return xm_fail(err, XM_CANCELLED, "cancelled before step %u of %u", i,
                           p->n_steps);
        if (!recorded && (is_empty(r, &p->steps[i]) ||
                          (only_counts && (p->steps[i].kind == XM_STEP_HOST ||
                                           p->steps[i].kind == XM_STEP_COLLECTIVE))))
            continue;
        xm_debug(XM_DEBUG_STEPS, "%u %s '%s'", i, p->steps[i].op, p->steps[i].name);
        xm_queue_label(r->queue, i);
        if (r->sums)
            xm_request_count_step(r, i);
        enum xm_status s = recorded ? xm_request_replay(r, recorded, err)
                                    : xm_request_record(r, &p->steps[i], run_step, err);
        if (s == XM_OK && r->hook)
            s = call_hook(r, i, err);
        if (s != XM_OK) {
            xm_error_prefix(err, "step %u %s '%s'", i, p->steps[i].op, p->steps[i].name);
            return s;
        }
    }
    return XM_OK;
}

static enum xm_status
enqueue_steps(struct xm_request *r, struct xm_error *err)
{
    xm_request_begin_recording(r);
    const enum xm_status s = run_steps(r, err);
    xm_request_end_recording(r, s == XM_OK);
    xm_queue_label(r->queue, XM_NO_LABEL);
    return s;
}

enum xm_status
xm_request_run_chunk(struct xm_request *r, const struct xm_host_tensor *inputs,
                     const struct xm_intake_chunk *chunk, struct xm_error *err)
{
    if (r->program->n_kv)
        XM_TRY(xm_kv_tables_write(r->tables, chunk->sequences, chunk->tokens, chunk->n,
                                  r->queue, err));
    XM_TRY(xm_request_make_plan(r, err));
    XM_TRY(write_inputs(r, inputs, err));
    XM_TRY(write_shape_values(r, err));
    XM_TRY(copy_inputs(r, inputs, err));
    XM_TRY(enqueue_steps(r, err));
    return xm_queue_flush(r->queue, err);
}

enum xm_status
xm_request_run_again(struct xm_request *r, struct xm_kv_sequence *const *sequences,
                     uint32_t n, struct xm_error *err)
{
    XM_TRY(xm_kv_tables_advance(r->tables, sequences, n, r->queue, err));
    XM_TRY(xm_request_make_plan(
        r, err)); /* finds the same plan, because sizes are the same; scratch may grow */
    return enqueue_steps(r, err);
}
