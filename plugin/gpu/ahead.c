/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/ahead.h"

#include "plugin/gpu/request_run.h"
#include "primitives/choose/choose.h"
#include "runtime/util/memory.h"

/* What a run adds to the request's counts. It is not counted before it is part of the sequence. */
struct counts {
    uint64_t kernels, waits, weight_bytes, multiply_adds;
};

struct xm_ahead {
    struct xm_request *request; /* borrowed */
    uint32_t ids, positions;    /* inputs; UINT32_MAX: none */
    struct xm_choose_desc desc;
    struct xm_primitive *choose; /* for `desc`; NULL: there is none yet */
    /* Of it, with the arguments of the last choice; NULL: they are bound each time. */
    struct xm_recording *launches;
    uint64_t vocabulary;
    struct xm_buffer *state, *parts, *chosen;
    struct xm_buffer *seen; /* NULL: no choice has adjusted logits so far */
    /* `chosen` as the host sees it, who reads a slot while the choice behind it writes the next;
     * NULL: the host does not see it */
    const int32_t *result;
    /* The sequence that is decoded; NULL: none is, and nothing is in the queue. */
    struct xm_kv_sequence *sequence;
    struct xm_token_choice how; /* as it was sent to the device */
    uint64_t n;                 /* the number of the choice that the host sees next */
    bool is_running;            /* the run of the last of them is in the queue */
    int32_t last;               /* that one */
    struct counts counts;       /* of its run */
};

/* ---- making and freeing -------------------------------------------------------------------- */

static const char *
why_not(const struct xm_program *p)
{
    if (!p->config.ahead)
        return "XM_AHEAD is NO";
    if (!p->is_ragged || p->chosen_rows == XM_NO_VALUE)
        return "sequences of the model cannot be mixed";
    if (p->n_host_steps || p->expert_caches)
        return "a step needs the host";
    return p->config.profiling ? "launches are measured (PERF_COUNT)" : NULL;
}

static struct xm_choose_desc
desc_of(const struct xm_program *p, uint32_t ids, uint32_t positions,
        const struct xm_token_choice *how)
{
    const struct xm_port *ports = p->ports.inputs;
    return xm_choose_desc_of(how, ports[ids].type.element,
                             positions == UINT32_MAX ? XM_I64
                                                     : ports[positions].type.element);
}

enum xm_status
xm_ahead_build(struct xm_program *p, uint32_t ids, uint32_t positions,
               struct xm_error *err)
{
    const struct xm_token_choice likeliest = {.draws = false};
    const struct xm_choose_desc desc = desc_of(p, ids, positions, &likeliest);
    struct xm_primitive *choose = NULL;
    if (why_not(p))
        return XM_OK;
    XM_TRY(xm_choose_create(p->engine, &desc, &choose, err));
    xm_primitive_destroy(choose); /* its kernels are the engine's */
    return XM_OK;
}

static enum xm_status
create_buffers(struct xm_ahead *a, struct xm_error *err)
{
    const struct xm_program *p = a->request->program;
    const struct xm_shape *s = &p->ports.outputs[0].type.shape;
    const struct xm_dim last = s->dim[s->rank - 1];
    if (!xm_dim_is_const(last) || last.n <= 0)
        return xm_fail(err, XM_UNSUPPORTED, "the vocabulary has no fixed size");
    a->vocabulary = (uint64_t)last.n;
    XM_TRY(xm_buffer_create(p->engine, XM_USE_DEVICE, sizeof(struct xm_token_choice),
                            &a->state, err));
    XM_TRY(xm_buffer_create(p->engine, XM_USE_DEVICE,
                            xm_choose_parts_bytes(a->vocabulary), &a->parts, err));
    XM_TRY(xm_buffer_create(p->engine, XM_USE_HOST, XM_CHOOSE_SLOTS * sizeof(*a->result),
                            &a->chosen, err));
    a->result = xm_buffer_host_ptr(a->chosen);
    return XM_OK;
}

enum xm_status
xm_ahead_create(struct xm_request *r, uint32_t ids, uint32_t positions,
                struct xm_ahead **out, struct xm_error *err)
{
    const char *reason = why_not(r->program);
    if (!reason && xm_queue_measures(r->queue))
        reason = "the queue measures launches";
    if (reason)
        return xm_fail(err, XM_UNSUPPORTED, "no tokens are chosen on the device: %s",
                       reason);
    struct xm_ahead *a = xm_calloc(1, sizeof(*a));
    if (!a)
        return xm_no_memory(err, "tokens ahead of the host");
    *a = (struct xm_ahead){.request = r, .ids = ids, .positions = positions};
    struct xm_error ignored = {0};
    if (r->program->config.replays) /* else, and without memory, there is none */
        (void)xm_recording_create(r->queue, &a->launches, &ignored);
    const enum xm_status s = create_buffers(a, err);
    if (s == XM_OK)
        *out = a;
    else
        xm_ahead_destroy(a);
    return s;
}

void
xm_ahead_destroy(struct xm_ahead *a)
{
    if (!a)
        return;
    xm_ahead_stop(a);
    xm_primitive_destroy(a->choose);
    xm_recording_destroy(a->launches);
    xm_buffer_unref(a->state);
    xm_buffer_unref(a->parts);
    xm_buffer_unref(a->chosen);
    xm_buffer_unref(a->seen);
    xm_free(a);
}

enum xm_status
xm_ahead_prepare(struct xm_ahead *a, const struct xm_token_choice *how,
                 struct xm_error *err)
{
    const struct xm_program *p = a->request->program;
    if (how->draws && !xm_choose_is_fast(p->engine))
        return xm_fail(err, XM_UNSUPPORTED, "the host draws tokens faster");
    if (a->request->hook)
        return xm_fail(err, XM_UNSUPPORTED, "a hook reads the operands of every step");
    const struct xm_choose_desc desc = desc_of(p, a->ids, a->positions, how);
    if (a->choose && desc.draws == a->desc.draws && desc.top_k == a->desc.top_k &&
        desc.top_p == a->desc.top_p && desc.adjusts == a->desc.adjusts)
        return XM_OK;
    xm_ahead_stop(a);
    xm_primitive_destroy(a->choose);
    a->choose = NULL;
    if (a->launches)
        xm_recording_truncate(a->launches, 0);
    a->desc = desc;
    return xm_choose_create(p->engine, &desc, &a->choose, err);
}

/* ---- what is enqueued ------------------------------------------------------------------------ */

static struct counts
counts_of(const struct xm_request *r)
{
    struct counts c = {.weight_bytes = r->stats.weight_bytes,
                       .multiply_adds = r->stats.multiply_adds};
    xm_queue_counts(r->queue, &c.waits, &c.kernels);
    return c;
}

static struct xm_operand
operand_of(struct xm_buffer *b, enum xm_element e, int64_t n)
{
    return (struct xm_operand){.buffer = b, .element = e, .rank = 1, .dim = {n}};
}

static enum xm_status
enqueue_choice(struct xm_ahead *a, struct xm_error *err)
{
    struct xm_request *r = a->request;
    const struct xm_program *p = r->program;
    struct xm_operand o[XM_CHOOSE_N_OPERANDS] = {0}, tables[XM_ATTENTION_N_OPERANDS];
    const struct xm_run run = {.queue = r->queue};
    xm_request_operand(r, p->output_values[0], &o[XM_CHOOSE_LOGITS]);
    xm_request_operand(r, p->input_values[a->ids], &o[XM_CHOOSE_IDS]);
    if (a->positions != UINT32_MAX)
        xm_request_operand(r, p->input_values[a->positions], &o[XM_CHOOSE_POSITION]);
    xm_kv_tables_operands(r->tables, 0, tables);
    o[XM_CHOOSE_PAST] = tables[XM_ATTENTION_PAST_LENS];
    o[XM_CHOOSE_STATE] = operand_of(a->state, XM_U8, sizeof(struct xm_token_choice));
    if (a->desc.adjusts)
        o[XM_CHOOSE_SEEN] = operand_of(a->seen, XM_U8, (int64_t)xm_buffer_bytes(a->seen));
    o[XM_CHOOSE_PARTS] = operand_of(a->parts, XM_U8, (int64_t)xm_buffer_bytes(a->parts));
    o[XM_CHOOSE_CHOSEN] = operand_of(a->chosen, XM_I32, XM_CHOOSE_SLOTS);
    xm_queue_repeat(r->queue, a->launches);
    const enum xm_status s = xm_primitive_run(a->choose, o, &run, err);
    xm_queue_record(r->queue, NULL);
    return s;
}

static enum xm_status
make_room(struct xm_ahead *a, const struct xm_token_choice *how, struct xm_error *err)
{
    const uint64_t bytes = xm_choose_seen_bytes(a->vocabulary, how->window);
    if (!how->adjusts || (a->seen && xm_buffer_bytes(a->seen) >= bytes))
        return XM_OK;
    xm_buffer_unref(a->seen);
    a->seen = NULL;
    return xm_buffer_create(a->request->program->engine, XM_USE_DEVICE, bytes, &a->seen,
                            err);
}

/* The choice behind the request's last run, which has been waited for. */
static enum xm_status
begin(struct xm_ahead *a, struct xm_kv_sequence *s, const struct xm_device_choice *c,
      struct xm_error *err)
{
    struct xm_queue *queue = a->request->queue;
    if (!a->result && !a->request->enqueues_counted)
        return xm_fail(err, XM_UNSUPPORTED, "the host does not see the device's memory");
    a->n = c->how.n;
    a->is_running = false;
    XM_TRY(make_room(a, &c->how, err));
    a->how = c->how;
    XM_TRY(
        xm_choose_begin(queue, a->state, a->seen, a->vocabulary, &a->how, &c->seen, err));
    a->sequence = s;
    xm_request_forget_results(a->request);
    XM_TRY(enqueue_choice(a, err));
    return xm_queue_keep_pace(queue, err);
}

/* The run of the token that is being chosen, and the choice behind it. */
static enum xm_status
enqueue_run(struct xm_ahead *a, struct counts *counts, struct xm_error *err)
{
    struct xm_request *r = a->request;
    const struct counts before = counts_of(r);
    XM_TRY(xm_kv_sequence_reserve(a->sequence, 1, r->queue, err));
    enum xm_status s = xm_request_run_again(r, a->sequence, err);
    if (s == XM_OK)
        s = enqueue_choice(a, err);
    const struct counts after = counts_of(r);
    r->stats.weight_bytes = before.weight_bytes;
    r->stats.multiply_adds = before.multiply_adds;
    *counts = (struct counts){after.kernels - before.kernels, after.waits - before.waits,
                              after.weight_bytes - before.weight_bytes,
                              after.multiply_adds - before.multiply_adds};
    return s;
}

/* ---- what has ended -------------------------------------------------------------------------- */

/* The run of the last token, and the choice behind it, have ended. */
static void
take(struct xm_ahead *a, struct xm_device_choice *c)
{
    struct xm_request_stats *stats = &a->request->stats;
    if (a->is_running) {
        xm_kv_sequence_commit_first(a->sequence, 1, &a->last);
        stats->weight_bytes += a->counts.weight_bytes;
        stats->multiply_adds += a->counts.multiply_adds;
        stats->kernels = a->counts.kernels;
        stats->waits =
            a->counts.waits + 1; /* that for its choice, which is not counted */
    }
    a->last = c->id = a->result ? a->result[a->n % XM_CHOOSE_SLOTS] : 0;
    a->n++;
}

bool
xm_ahead_decodes(const struct xm_ahead *a, const struct xm_kv_sequence *s)
{
    return a->sequence == s;
}

void
xm_ahead_stop(struct xm_ahead *a)
{
    if (!a->sequence)
        return;
    xm_queue_finish(a->request->queue, NULL);
    xm_kv_sequence_cancel(a->sequence);
    a->sequence = NULL;
}

/* All that is in the queue has been waited for, and only the token's run is to be dropped, which
 * was not enqueued as a whole. */
static enum xm_status
end(struct xm_ahead *a, struct xm_device_choice *c, struct xm_error *err)
{
    XM_TRY(xm_queue_finish(a->request->queue, err));
    take(a, c);
    xm_kv_sequence_cancel(a->sequence);
    a->sequence = NULL;
    return XM_OK;
}

static enum xm_status
choose(struct xm_ahead *a, struct xm_device_choice *c, struct xm_error *err)
{
    struct xm_error ignored = {0};
    struct counts counts = {0};
    c->is_running = c->more && enqueue_run(a, &counts, &ignored) == XM_OK;
    if (!c->is_running)
        return end(a, c, err);
    XM_TRY(xm_queue_keep_pace(a->request->queue, err));
    take(a, c);
    a->is_running = true;
    a->counts = counts;
    return XM_OK;
}

enum xm_status
xm_ahead_choose(struct xm_ahead *a, struct xm_kv_sequence *s, struct xm_device_choice *c,
                struct xm_error *err)
{
    enum xm_status status = a->sequence ? XM_OK : begin(a, s, c, err);
    if (status == XM_OK)
        status = choose(a, c, err);
    if (status != XM_OK)
        xm_ahead_stop(a);
    return status;
}
