/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/ahead.h"

#include "plugin/gpu/request_run.h"
#include "primitives/choose/choose.h"
#include "runtime/util/memory.h"

/* A text of the batch. */
struct member {
    uint64_t n;   /* the number of the choice that the host reads next */
    int32_t last; /* the last token that the host has read; its run is in the queue */
};

struct xm_ahead {
    struct xm_request *request; /* borrowed */
    uint32_t ids, positions;    /* inputs; UINT32_MAX: none */
    struct xm_choose_desc desc;
    struct xm_primitive *choose; /* for `desc`; NULL: not created yet */
    /* the launches of `choose` with the arguments of the last choice; NULL: arguments are bound
     * for each choice */
    struct xm_recording *launches;
    uint64_t vocabulary;
    /* [room], by text: */
    struct xm_kv_sequence **sequences; /* NULL: the text has left         */
    struct xm_token_choice *how;       /* as they were sent to the device */
    struct member *members;
    struct xm_buffer *state, *parts, *chosen;
    struct xm_buffer *seen; /* tokens that texts have; NULL: not needed so far */
    uint64_t seen_bytes;    /* bytes of one text in `seen`                     */
    /* The bytes of `chosen` in host memory. The host reads a slot while the next choice writes the
     * next slot. NULL: the host cannot access the buffer. */
    const int32_t *result;
    uint32_t room;
    uint32_t n,
        n_left; /* texts of the choices in the queue, 0: no choice is in it; texts not left */
    bool is_running; /* the run of the texts' last tokens is in the queue */
    /* What that run counts; added to the request's counts when its tokens are committed. */
    struct xm_run_counts counts;
};

/* ---- making and freeing -------------------------------------------------------------------- */

static const char *
why_not(const struct xm_program *p)
{
    if (!p->config.ahead)
        return "XM_AHEAD is NO";
    if (!p->is_ragged || p->chosen_rows == XM_NO_VALUE)
        return "the model cannot run sequences of different lengths together";
    if (p->n_host_steps || p->expert_caches)
        return "the model has steps that run on the host";
    return p->config.profiling ? "the device times of kernels are measured (PERF_COUNT)"
                               : NULL;
}

/* Returns the description of a choice of the likeliest token; xm_choose_add adds what texts
 * need. */
static struct xm_choose_desc
desc_of(const struct xm_program *p, uint32_t ids, uint32_t positions)
{
    const struct xm_port *ports = p->ports.inputs;
    return (struct xm_choose_desc){
        .ids = ports[ids].type.element,
        .position = positions == UINT32_MAX ? XM_I64 : ports[positions].type.element};
}

/* Builds the kernels of a choice; the engine keeps them when the primitive is destroyed. */
static enum xm_status
build(const struct xm_program *p, const struct xm_choose_desc *desc, struct xm_error *err)
{
    struct xm_primitive *choose = NULL;
    XM_TRY(xm_choose_create(p->engine, desc, &choose, err));
    xm_primitive_destroy(choose);
    return XM_OK;
}

enum xm_status
xm_ahead_build(struct xm_program *p, uint32_t ids, uint32_t positions,
               struct xm_error *err)
{
    const struct xm_choose_desc likeliest = desc_of(p, ids, positions);
    return why_not(p) ? XM_OK : build(p, &likeliest, err);
}

static void
free_room(struct xm_ahead *a)
{
    xm_free(a->sequences);
    xm_free(a->how);
    xm_free(a->members);
    xm_buffer_unref(a->state);
    xm_buffer_unref(a->parts);
    xm_buffer_unref(a->chosen);
    a->sequences = NULL;
    a->how = NULL;
    a->members = NULL;
    a->state = a->parts = a->chosen = NULL;
    a->room = 0;
}

/* Makes room for n texts. No choice may be in the queue. */
static enum xm_status
make_room(struct xm_ahead *a, uint32_t n, struct xm_error *err)
{
    struct xm_engine *e = a->request->program->engine;
    uint32_t room = a->room ? a->room : 1;
    if (n <= a->room)
        return XM_OK;
    while (room < n)
        room *= 2;
    free_room(a);
    a->sequences = xm_calloc(room, sizeof(struct xm_kv_sequence *));
    a->how = xm_calloc(room, sizeof(*a->how));
    a->members = xm_calloc(room, sizeof(*a->members));
    if (!a->sequences || !a->how || !a->members)
        return xm_no_memory(err, "%u texts ahead of the host", n);
    XM_TRY(xm_buffer_create(e, XM_USE_DEVICE, room * sizeof(*a->how), &a->state, err));
    XM_TRY(xm_buffer_create(e, XM_USE_DEVICE, room * xm_choose_parts_bytes(a->vocabulary),
                            &a->parts, err));
    XM_TRY(xm_buffer_create(e, XM_USE_HOST, room * XM_CHOOSE_SLOTS * sizeof(*a->result),
                            &a->chosen, err));
    a->result = xm_buffer_host_ptr(a->chosen);
    a->room = room;
    return XM_OK;
}

static enum xm_status
find_vocabulary(struct xm_ahead *a, struct xm_error *err)
{
    const struct xm_shape *s = &a->request->program->ports.outputs[0].type.shape;
    const struct xm_dim last = s->dim[s->rank - 1];
    if (!xm_dim_is_const(last) || last.n <= 0)
        return xm_fail(err, XM_UNSUPPORTED, "the vocabulary has no fixed size");
    a->vocabulary = (uint64_t)last.n;
    return XM_OK;
}

enum xm_status
xm_ahead_create(struct xm_request *r, uint32_t ids, uint32_t positions,
                struct xm_ahead **out, struct xm_error *err)
{
    const char *reason = why_not(r->program);
    if (!reason && xm_queue_measures(r->queue))
        reason = "the queue measures the device times of kernels";
    if (reason)
        return xm_fail(err, XM_UNSUPPORTED, "the device cannot choose tokens: %s",
                       reason);
    struct xm_ahead *a = xm_calloc(1, sizeof(*a));
    if (!a)
        return xm_no_memory(err, "tokens ahead of the host");
    *a = (struct xm_ahead){.request = r, .ids = ids, .positions = positions};
    struct xm_error ignored = {0};
    if (r->program->config.replays) /* a failure leaves a->launches NULL */
        (void)xm_recording_create(r->queue, &a->launches, &ignored);
    enum xm_status s = find_vocabulary(a, err);
    if (s == XM_OK)
        s = make_room(a, 1, err);
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
    xm_ahead_stop(a, NULL);
    xm_primitive_destroy(a->choose);
    xm_recording_destroy(a->launches);
    free_room(a);
    xm_buffer_unref(a->seen);
    xm_free(a);
}

/* ---- kinds of choices ------------------------------------------------------------------------ */

static enum xm_status
check_kind(const struct xm_ahead *a, const struct xm_choose_desc *desc,
           struct xm_error *err)
{
    if (desc->draws && !xm_choose_is_fast(a->request->program->engine))
        return xm_fail(err, XM_UNSUPPORTED, "the host draws random tokens faster");
    if (a->request->hook)
        return xm_fail(err, XM_UNSUPPORTED, "the operands of every step are observed");
    return XM_OK;
}

enum xm_status
xm_ahead_prepare(const struct xm_ahead *a, const struct xm_token_choice *how,
                 struct xm_error *err)
{
    const struct xm_program *p = a->request->program;
    struct xm_choose_desc desc = desc_of(p, a->ids, a->positions);
    xm_choose_add(&desc, how);
    XM_TRY(check_kind(a, &desc, err));
    return build(p, &desc, err);
}

/* Sets a->choose to a primitive that can choose the tokens of all texts of the list. */
static enum xm_status
take_kernels(struct xm_ahead *a, const struct xm_device_choices *c, struct xm_error *err)
{
    const struct xm_program *p = a->request->program;
    struct xm_choose_desc desc = desc_of(p, a->ids, a->positions);
    for (uint32_t i = 0; i < c->n; i++)
        xm_choose_add(&desc, &c->list[i].how);
    XM_TRY(check_kind(a, &desc, err));
    if (a->choose && desc.draws == a->desc.draws && desc.top_k == a->desc.top_k &&
        desc.top_p == a->desc.top_p && desc.adjusts == a->desc.adjusts)
        return XM_OK;
    xm_primitive_destroy(a->choose);
    a->choose = NULL;
    if (a->launches)
        xm_recording_truncate(a->launches, 0);
    a->desc = desc;
    return xm_choose_create(p->engine, &desc, &a->choose, err);
}

/* Makes a->seen large enough for the tokens that each text has, if choices adjust logits. All texts
 * get as many bytes as the one with the longest window needs. */
static enum xm_status
make_seen(struct xm_ahead *a, const struct xm_device_choices *c, struct xm_error *err)
{
    a->seen_bytes = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct xm_token_choice *how = &c->list[i].how;
        const uint64_t bytes = xm_choose_seen_bytes(a->vocabulary, how->window);
        if (how->adjusts && bytes > a->seen_bytes)
            a->seen_bytes = bytes;
    }
    const uint64_t all = c->n * a->seen_bytes;
    if (all == 0 || (a->seen && xm_buffer_bytes(a->seen) >= all))
        return XM_OK;
    xm_buffer_unref(a->seen);
    a->seen = NULL;
    return xm_buffer_create(a->request->program->engine, XM_USE_DEVICE, all, &a->seen,
                            err);
}

static enum xm_status
get_ready(struct xm_ahead *a, const struct xm_device_choices *c, struct xm_error *err)
{
    XM_TRY(take_kernels(a, c, err));
    XM_TRY(make_room(a, c->n, err));
    if (!a->result && !a->request->enqueues_counted)
        return xm_fail(err, XM_UNSUPPORTED, "the host cannot read the device's memory");
    return make_seen(a, c, err);
}

/* ---- enqueuing ------------------------------------------------------------------------------- */

/* Returns buffer b as an operand of `cols` elements for each text. */
static struct xm_operand
operand_of(const struct xm_ahead *a, struct xm_buffer *b, enum xm_element e,
           uint64_t cols)
{
    return (struct xm_operand){
        .buffer = b, .element = e, .rank = 2, .dim = {a->n, (int64_t)cols}};
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
    o[XM_CHOOSE_STATE] = operand_of(a, a->state, XM_U8, sizeof(struct xm_token_choice));
    if (a->desc.adjusts)
        o[XM_CHOOSE_SEEN] = operand_of(a, a->seen, XM_U8, a->seen_bytes);
    o[XM_CHOOSE_PARTS] =
        operand_of(a, a->parts, XM_U8, xm_choose_parts_bytes(a->vocabulary));
    o[XM_CHOOSE_CHOSEN] = operand_of(a, a->chosen, XM_I32, XM_CHOOSE_SLOTS);
    xm_queue_repeat(r->queue, a->launches);
    const enum xm_status s = xm_primitive_run(a->choose, o, &run, err);
    xm_queue_record(r->queue, NULL);
    return s;
}

static enum xm_status
write_seen(struct xm_ahead *a, const struct xm_device_choices *c, struct xm_error *err)
{
    const uint64_t bytes = c->n * a->seen_bytes;
    if (bytes == 0)
        return XM_OK;
    uint8_t *list = xm_calloc(1, (size_t)bytes);
    if (!list)
        return xm_no_memory(err, "the counts of tokens");
    for (uint32_t i = 0; i < c->n; i++)
        if (c->list[i].how.adjusts)
            xm_choose_fill_seen(list + i * a->seen_bytes, a->vocabulary, &c->list[i].how,
                                &c->list[i].seen);
    const enum xm_status s =
        xm_queue_write(a->request->queue, a->seen, 0, list, bytes, err);
    xm_free(list);
    return s;
}

/* Sends to the device how the tokens of each text are chosen, and the tokens that texts have. */
static enum xm_status
send(struct xm_ahead *a, const struct xm_device_choices *c, struct xm_error *err)
{
    XM_TRY(write_seen(a, c, err));
    for (uint32_t i = 0; i < c->n; i++)
        a->how[i] = c->list[i].how;
    return xm_queue_send(a->request->queue, a->state, 0, a->how, c->n * sizeof(*a->how),
                         err);
}

/* Enqueues the first choice, from the logits of the request's last run, which has ended. */
static enum xm_status
begin(struct xm_ahead *a, struct xm_kv_sequence *const *sequences,
      const struct xm_device_choices *c, struct xm_error *err)
{
    struct xm_error why = {0};
    if (get_ready(a, c, &why) != XM_OK)
        return xm_fail(err, XM_UNSUPPORTED, "%s", why.text);
    for (uint32_t i = 0; i < c->n; i++) {
        a->sequences[i] = sequences[i];
        a->members[i].n = c->list[i].how.n;
    }
    a->n = a->n_left = c->n;
    a->is_running = false;
    XM_TRY(send(a, c, err));
    xm_request_forget_results(a->request);
    XM_TRY(enqueue_choice(a, err));
    return xm_queue_keep_pace(a->request->queue, err);
}

/* Enqueues the run of the tokens that the choice in the queue will choose, and the next choice. */
static enum xm_status
enqueue_run(struct xm_ahead *a, struct xm_run_counts *counts, struct xm_error *err)
{
    struct xm_request *r = a->request;
    const struct xm_run_counts before = xm_request_counts(r);
    for (uint32_t i = 0; i < a->n; i++)
        XM_TRY(xm_kv_sequence_reserve(a->sequences[i], 1, r->queue, err));
    enum xm_status s = xm_request_run_again(r, a->sequences, a->n, err);
    if (s == XM_OK)
        s = enqueue_choice(a, err);
    *counts = xm_request_take_back(r, &before);
    counts->waits++; /* the wait for the run's choice, which the queue does not count */
    return s;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Call when the run of the last tokens and the choice behind it have ended: commits the run's
 * tokens to the sequences, and sets c->list[].id to the chosen tokens. */
static void
take(struct xm_ahead *a, struct xm_device_choices *c)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        struct member *m = &a->members[i];
        if (!a->sequences[i])
            continue;
        if (a->is_running)
            xm_kv_sequence_commit_first(a->sequences[i], 1, &m->last);
        m->last = a->result ? a->result[i * XM_CHOOSE_SLOTS + m->n % XM_CHOOSE_SLOTS] : 0;
        m->n++;
        c->list[k++].id = m->last;
    }
    if (a->is_running)
        xm_request_add(a->request, &a->counts);
}

bool
xm_ahead_decodes(const struct xm_ahead *a, struct xm_kv_sequence *const *sequences,
                 uint32_t n)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!a->sequences[i])
            continue;
        if (k == n || a->sequences[i] != sequences[k])
            return false;
        k++;
    }
    return k > 0 && k == n;
}

/* Removes sequence s (NULL: all) and releases its reserved pages. The queue must be empty. */
static void
drop(struct xm_ahead *a, const struct xm_kv_sequence *s)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (!a->sequences[i] || (s && a->sequences[i] != s))
            continue;
        xm_kv_sequence_cancel(a->sequences[i]);
        a->sequences[i] = NULL;
        a->n_left--;
    }
    if (a->n_left == 0)
        a->n = 0;
}

void
xm_ahead_stop(struct xm_ahead *a, const struct xm_kv_sequence *s)
{
    bool is_there = false;
    for (uint32_t i = 0; i < a->n; i++)
        is_there |= a->sequences[i] && (!s || a->sequences[i] == s);
    if (!is_there)
        return;
    xm_queue_finish(a->request->queue, NULL);
    drop(a, s);
}

/* Ends decoding ahead: waits for the queue, takes the last choice, and removes all sequences. A run
 * behind the last choice that was enqueued only in part is dropped. */
static enum xm_status
end(struct xm_ahead *a, struct xm_device_choices *c, struct xm_error *err)
{
    XM_TRY(xm_queue_finish(a->request->queue, err));
    take(a, c);
    drop(a, NULL);
    return XM_OK;
}

static enum xm_status
choose(struct xm_ahead *a, struct xm_device_choices *c, struct xm_error *err)
{
    struct xm_error ignored = {0};
    struct xm_run_counts counts = {0};
    c->is_running =
        c->more && a->n_left == a->n && enqueue_run(a, &counts, &ignored) == XM_OK;
    if (!c->is_running)
        return end(a, c, err);
    XM_TRY(xm_queue_keep_pace(a->request->queue, err));
    take(a, c);
    a->is_running = true;
    a->counts = counts;
    return XM_OK;
}

enum xm_status
xm_ahead_choose(struct xm_ahead *a, struct xm_kv_sequence *const *sequences,
                struct xm_device_choices *c, struct xm_error *err)
{
    enum xm_status status = a->n ? XM_OK : begin(a, sequences, c, err);
    if (status == XM_OK)
        status = choose(a, c, err);
    if (status != XM_OK)
        xm_ahead_stop(a, NULL);
    return status;
}
