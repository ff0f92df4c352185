/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: the sizes of all values for some bindings of symbols, and buffers for them.
 *
 *   activations  views of one or more blocks, at offsets by lifetimes (runtime/plan.h)
 *   scratch      one buffer, as large as the largest that a step needs
 *   inputs, outputs, shape values: each plan has a buffer for each, because the host accesses them
 *
 * Only one plan runs at a time, and its steps one after the other. So blocks and scratch belong to
 * the request, are as large as the largest plan needs, and all plans have views of the same bytes.
 */
#include <string.h>

#include "plugin/gpu/request_run.h"
#include "runtime/plan.h"
#include "runtime/util/log.h"
#include "transformations/graph/symbols.h"

void
xm_request_operand(const struct xm_request *r, uint32_t value, struct xm_operand *out)
{
    const struct xm_program *p = r->program;
    *out = (struct xm_operand){0};
    if (value == XM_NO_VALUE)
        return;
    const struct xm_program_value *v = &p->values[value];
    uint32_t root = xm_program_root(p, value);
    out->element = v->element;
    out->rank = v->shape.rank;
    for (uint32_t i = 0; i < out->rank; i++)
        xm_dim_eval(v->shape.dim[i], r->bindings.list, r->bindings.n, &out->dim[i], NULL);
    out->buffer = p->values[root].place == XM_PLACE_CONST ? p->values[root].buffer
                  : r->plan                               ? r->plan->views[root]
                                                          : NULL;
}

void
xm_request_operands(const struct xm_request *r, const struct xm_step *s,
                    struct xm_operand *out)
{
    for (uint32_t i = 0; i < s->n_operands; i++)
        xm_request_operand(r, s->operand[i].value, &out[i]);
    if (s->kind == XM_STEP_ATTENTION)
        xm_kv_tables_operands(r->tables,
                              xm_kv_pool_group_of(r->program->kv_pool, s->layer), out);
}

static enum xm_status
value_bytes(const struct xm_request *r, const struct xm_bindings *room, uint32_t id,
            uint64_t *bytes, struct xm_error *err)
{
    const struct xm_program_value *v = &r->program->values[id];
    uint64_t n = 1;
    for (uint32_t i = 0; i < v->shape.rank; i++) {
        int64_t d = 0;
        XM_TRY(xm_dim_eval(v->shape.dim[i], room->list, room->n, &d, err));
        if (d < 0 || !xm_mul_size(n, (uint64_t)d, &n))
            return xm_fail(err, XM_INVALID, "dimension %u would be %lld", i,
                           (long long)d);
    }
    if (!xm_element_bytes(v->element, n, bytes))
        return xm_fail(err, XM_INVALID, "the size of %llu elements of %s overflows",
                       (unsigned long long)n, xm_element_text(v->element));
    return XM_OK;
}

static bool
is_used(const struct xm_program *p, uint32_t id)
{
    const struct xm_program_value *v = &p->values[id];
    return v->place == XM_PLACE_INPUT || v->place == XM_PLACE_OUTPUT ||
           v->first != UINT32_MAX;
}

static enum xm_status
compute_sizes(struct xm_request *r, const struct xm_bindings *room, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    for (uint32_t i = 0; i < p->n_values; i++) {
        r->sizes[i] = 0;
        if (p->values[i].place == XM_PLACE_ALIAS ||
            p->values[i].place == XM_PLACE_CONST || !is_used(p, i))
            continue;
        enum xm_status s = value_bytes(r, room, i, &r->sizes[i], err);
        if (s != XM_OK) {
            const struct xm_value *source = p->values[i].source;
            xm_error_prefix(err, "the size of value %u%s%s", i, source ? " of " : "",
                            source ? source->node->name : "");
            return s;
        }
    }
    return XM_OK;
}

static bool
is_io(const struct xm_program *p, uint32_t id)
{
    enum xm_place place = p->values[id].place;
    return place == XM_PLACE_INPUT || place == XM_PLACE_OUTPUT || place == XM_PLACE_SHAPE;
}

void
xm_request_free_plan(struct xm_request *r, struct xm_buffer_plan *plan)
{
    xm_request_free_recording(&plan->recording);
    for (uint32_t i = 0; plan->views && i < r->program->n_values; i++) {
        if (is_io(r->program, i))
            xm_pool_release(r->pool, plan->views[i]);
        else
            xm_buffer_unref(plan->views[i]);
    }
    xm_free(plan->views);
    *plan = (struct xm_buffer_plan){0};
}

uint64_t
xm_request_activation_bytes(const struct xm_request *r)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->n_blocks; i++)
        bytes += r->blocks[i] ? xm_buffer_bytes(r->blocks[i]) : 0;
    return bytes;
}

/* ---- activations ---------------------------------------------------------------- */

/* Replaces block i by a larger one. The other plans have views of the old block, so they are freed.
 * No enqueued command uses the old block: each chunk ends with a wait, and a run ahead of the host
 * uses the plan of the run before it. */
static enum xm_status
replace_block(struct xm_request *r, const struct xm_buffer_plan *plan, uint32_t i,
              uint64_t bytes, struct xm_error *err)
{
    for (int k = 0; k < XM_KEPT_PLANS; k++) {
        if (&r->plans[k] != plan)
            xm_request_free_plan(r, &r->plans[k]);
    }
    xm_pool_release(r->pool, r->blocks[i]);
    r->blocks[i] = NULL;
    xm_pool_trim(r->pool); /* before the larger one, so that both are never held */
    return xm_pool_acquire(r->pool, bytes, XM_POOL_SHARED, &r->blocks[i], err);
}

static enum xm_status
ensure_blocks(struct xm_request *r, const struct xm_buffer_plan *plan,
              const struct xm_plan *offsets, struct xm_error *err)
{
    if (offsets->n_blocks > r->n_blocks) {
        struct xm_buffer **list =
            xm_realloc(r->blocks, offsets->n_blocks * sizeof(struct xm_buffer *));
        if (!list)
            return xm_no_memory(err, "a plan");
        r->blocks = list;
        while (r->n_blocks < offsets->n_blocks)
            r->blocks[r->n_blocks++] = NULL;
    }
    for (uint32_t i = 0; i < offsets->n_blocks; i++) {
        uint64_t bytes = offsets->block_bytes[i];
        if (!r->blocks[i] || xm_buffer_bytes(r->blocks[i]) < bytes)
            XM_TRY(replace_block(r, plan, i, bytes, err));
    }
    return XM_OK;
}

/* Returns whether two values share bytes, so that a write to one changes the other. */
static bool
share_bytes(const struct xm_program *p, const struct xm_plan_item *items, uint32_t a,
            uint32_t b)
{
    a = xm_program_root(p, a);
    b = xm_program_root(p, b);
    const struct xm_plan_item *x = &items[a], *y = &items[b];
    return a == b ||
           (x->bytes && y->bytes && x->block == y->block &&
            x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes);
}

/* Fails if a value that step s writes shares bytes with another operand of the step. */
static enum xm_status
check_apart(const struct xm_program *p, const struct xm_step *s,
            const struct xm_plan_item *items, struct xm_error *err)
{
    for (uint32_t i = 0; i < s->n_operands; i++) {
        const struct xm_step_operand *o = &s->operand[i];
        for (uint32_t k = 0; o->role & XM_ROLE_OUT && k < s->n_operands; k++) {
            const uint32_t other = s->operand[k].value;
            if (i != k && o->value != XM_NO_VALUE && other != XM_NO_VALUE &&
                share_bytes(p, items, o->value, other))
                return xm_fail(err, XM_INVALID,
                               "step %u %s '%s' would write value %u over value %u",
                               s->id, s->op, s->name, o->value, other);
        }
    }
    return XM_OK;
}

static enum xm_status
place_activations(struct xm_request *r, struct xm_buffer_plan *plan,
                  struct xm_plan_item *items, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    const struct xm_device_info *d = xm_engine_info(p->engine);
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct xm_program_value *v = &p->values[i];
        bool planned = v->place == XM_PLACE_ACTIVATION && is_used(p, i);
        items[i] =
            (struct xm_plan_item){.bytes = planned && !r->sizes[i] ? 1 : r->sizes[i],
                                  .first = v->first,
                                  .last = v->last};
        if (!planned)
            items[i] = (struct xm_plan_item){0};
    }
    struct xm_plan offsets = {0};
    enum xm_status s = xm_plan_make(items, p->n_values, d->max_alloc_bytes, d->base_align,
                                    &offsets, err);
    for (uint32_t i = 0; i < p->n_steps && s == XM_OK; i++)
        s = check_apart(p, &p->steps[i], items, err);
    if (s == XM_OK)
        s = ensure_blocks(r, plan, &offsets, err);
    for (uint32_t i = 0; i < p->n_values && s == XM_OK; i++) {
        if (items[i].bytes)
            s = xm_buffer_view(r->blocks[items[i].block], items[i].offset, items[i].bytes,
                               &plan->views[i], err);
    }
    xm_plan_free(&offsets);
    return s;
}

static enum xm_status
create_io(struct xm_request *r, struct xm_buffer_plan *plan, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    for (uint32_t i = 0; i < p->n_values; i++) {
        if (!is_io(p, i) || !is_used(p, i))
            continue;
        uint64_t bytes = r->sizes[i] ? r->sizes[i] : 1;
        XM_TRY(xm_pool_acquire(r->pool, bytes, XM_POOL_PRIVATE, &plan->views[i], err));
        plan->io_bytes += xm_buffer_bytes(plan->views[i]);
    }
    return XM_OK;
}

/* ---- scratch -------------------------------------------------------------------- */

/* Rounds the past of each sequence of the run up to a power of two in r->most_past. Scratch is
 * planned for these, so that it changes rarely while sequences grow. */
static enum xm_status
expect_past(struct xm_request *r, struct xm_error *err)
{
    const struct xm_attention_run *run = r->tables ? xm_kv_tables_run(r->tables) : NULL;
    const uint32_t n = run ? run->n_sequences : 0;
    if (n > r->most_room) {
        int32_t *list = xm_realloc(r->most_past, n * sizeof(*list));
        if (!list)
            return xm_no_memory(err, "a plan");
        r->most_past = list;
        r->most_room = n;
    }
    bool changes = n != r->n_most_past;
    r->n_most_past = n;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t past = run->past_lens[i];
        int32_t most = 256;
        while (most <= past && most < INT32_MAX / 2)
            most *= 2;
        most = most < past ? past : most;
        changes |= most != r->most_past[i];
        r->most_past[i] = most;
    }
    r->past_changes += changes;
    return XM_OK;
}

static enum xm_status
step_scratch(const struct xm_request *r, const struct xm_step *step, uint64_t *bytes,
             struct xm_error *err)
{
    struct xm_operand operands[XM_STEP_OPERANDS];
    xm_request_operands(r, step, operands);
    if (!r->tables)
        return xm_primitive_plan(step->primitive, operands, NULL, bytes, err);
    struct xm_attention_run a = *xm_kv_tables_run(r->tables);
    a.past_lens = r->most_past;
    return xm_primitive_plan(step->primitive, operands, &a, bytes, err);
}

/* Returns whether the scratch is certainly large enough: the plan's last run had the same sizes and
 * the same rounded pasts, and this run has one token of each sequence. */
static bool
is_scratch_known(const struct xm_request *r)
{
    const uint32_t n = r->n_most_past;
    return r->scratch && r->plan->past_changes == r->past_changes &&
           xm_request_is_alike(r, r->plan) && n > 0 &&
           xm_kv_tables_run(r->tables)->subsequence_begins[n] == (int32_t)n;
}

/* Makes the scratch large enough for every step. Called before every chunk, because the scratch of
 * attention may grow with the context although no value does. */
static enum xm_status
ensure_scratch(struct xm_request *r, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    uint64_t most = 0;
    XM_TRY(expect_past(r, err));
    if (is_scratch_known(r))
        return XM_OK;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        uint64_t bytes = 0;
        if (p->steps[i].kind == XM_STEP_PRIMITIVE ||
            p->steps[i].kind == XM_STEP_ATTENTION)
            XM_TRY(step_scratch(r, &p->steps[i], &bytes, err));
        most = bytes > most ? bytes : most;
    }
    r->plan->past_changes = r->past_changes;
    if (most <= r->stats.scratch_bytes)
        return XM_OK;
    XM_TRY(
        xm_queue_finish(r->queue, err)); /* a token that runs ahead may use the old one */
    for (int k = 0; k < XM_KEPT_PLANS; k++)
        xm_request_free_recording(&r->plans[k].recording); /* uses the old scratch */
    xm_kept_views_free(&r->views);
    xm_pool_release(r->pool, r->scratch);
    r->scratch = NULL;
    r->stats.scratch_bytes = 0;
    xm_pool_trim(r->pool); /* before the larger one, so that both are never held */
    XM_TRY(xm_pool_acquire(r->pool, most, XM_POOL_SHARED, &r->scratch, err));
    r->stats.scratch_bytes = most;
    return XM_OK;
}

static enum xm_status
build_plan(struct xm_request *r, struct xm_buffer_plan *plan, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    struct xm_plan_item *items = xm_calloc(p->n_values + 1, sizeof(*items));
    plan->views = xm_calloc(p->n_values + 1, sizeof(struct xm_buffer *));
    enum xm_status s = XM_OK;
    if (!items || !plan->views)
        s = xm_no_memory(err, "a plan of %u values", p->n_values);
    r->plan = plan;
    if (s == XM_OK)
        s = place_activations(r, plan, items, err);
    if (s == XM_OK)
        s = create_io(r, plan, err);
    if (s == XM_OK)
        s = ensure_scratch(r, err);
    xm_free(items);
    if (s != XM_OK) {
        r->plan = NULL;
        xm_request_free_plan(r, plan);
        return s;
    }
    xm_debug(XM_DEBUG_PLAN,
             "activations %llu bytes in %u blocks, scratch %llu bytes, inputs and "
             "outputs %llu bytes",
             (unsigned long long)xm_request_activation_bytes(r), r->n_blocks,
             (unsigned long long)r->stats.scratch_bytes,
             (unsigned long long)plan->io_bytes);
    return XM_OK;
}

/* Returns the smallest least * 2^i that is >= n. */
static int64_t
power_above(int64_t n, int64_t least)
{
    while (least < n && least <= INT64_MAX / 2)
        least *= 2;
    return least < n ? n : least;
}

/* Returns the bindings for which a plan is made: tokens, batch and samples rounded up to a power of
 * two, and past to at least 256. So a batch whose sequences come and go, or a context that grows,
 * needs few plans. If the rounded rows are more than a chunk has, tokens and batch are not
 * rounded. */
static struct xm_bindings
room_for(const struct xm_request *r)
{
    static const struct {
        const char *symbol;
        int64_t least;
        bool is_row;  /* the number of rows is the product of these symbols */
        int64_t more; /* added before rounding, because the next run will have more */
    } classes[] = {{XM_SYMBOL_TOKENS, 1, true, 0},
                   {XM_SYMBOL_BATCH, 1, true, 0},
                   {XM_SYMBOL_SAMPLES, 1, false, 0},
                   {XM_SYMBOL_PAST, 256, false, 1}};
    const int64_t chunk = (int64_t)r->program->config.ubatch;
    struct xm_bindings room = r->bindings, exact = r->bindings;
    int64_t rows = 1;
    for (size_t k = 0; k < XM_ARRAY_LEN(classes); k++) {
        for (uint32_t i = 0; i < room.n; i++) {
            struct xm_binding *b = &room.list[i];
            if (strcmp(b->symbol, classes[k].symbol) != 0)
                continue;
            b->value = power_above(b->value + classes[k].more, classes[k].least);
            rows *= classes[k].is_row ? b->value : 1;
            if (!classes[k].is_row)
                exact.list[i] = *b;
        }
    }
    return rows > chunk ? exact : room;
}

static bool
is_same_room(const struct xm_bindings *a, const struct xm_bindings *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->list[i].value != b->list[i].value ||
            strcmp(a->list[i].symbol, b->list[i].symbol) != 0)
            return false;
    }
    return true;
}

enum xm_status
xm_request_make_plan(struct xm_request *r, struct xm_error *err)
{
    struct xm_buffer_plan *oldest = &r->plans[0];
    const struct xm_bindings room = room_for(r);
    r->n_runs++;
    r->plan = NULL;
    for (int i = 0; i < XM_KEPT_PLANS && !r->plan; i++) {
        struct xm_buffer_plan *plan = &r->plans[i];
        if (plan->used < oldest->used)
            oldest = plan;
        if (plan->views && is_same_room(&plan->room, &room))
            r->plan = plan;
    }
    if (r->plan) {
        XM_TRY(ensure_scratch(r, err));
    } else {
        xm_request_free_plan(r, oldest);
        XM_TRY(compute_sizes(r, &room, err));
        XM_TRY(build_plan(r, oldest, err));
        oldest->room = room;
    }
    r->plan->used = r->n_runs;
    return XM_OK;
}
