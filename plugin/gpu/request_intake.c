/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs an intake chunk by chunk: makes the inputs of a chunk, runs it, reads its results, and makes
 * its tokens part of the sequences. intake.h says how chunks are cut.
 */
#include <string.h>

#include "plugin/gpu/request_run.h"
#include "plugin/lower/expert_caches.h"
#include "transformations/graph/symbols.h"

/* ---- where the tokens of a chunk are ------------------------------------------------------ */

enum part { TOKENS, CONTEXT, RESULTS };

/* Consecutive tokens of the run's tensor: from `first` on, n of them. A chunk's tensor has its
 * stretches one after the other. */
struct stretch {
    uint64_t first, n;
};

/* Returns the number of stretches of a chunk. Rows side by side have the same stretch. */
static uint32_t
n_stretches(const struct xm_intake *f)
{
    return f->is_packed ? f->chunk.n : 1;
}

static struct stretch
stretch_of(const struct xm_intake *f, enum part part, uint32_t k)
{
    if (!f->is_packed)
        return part == CONTEXT ? (struct stretch){0, xm_intake_past(f) + f->chunk.length}
                               : (struct stretch){f->done, f->chunk.length};
    const struct xm_intake_row *row = &f->rows[f->chunk.row[k]];
    struct stretch s = {row->at + row->done, f->chunk.tokens[k]};
    if (part == RESULTS)
        s.n = xm_intake_wanted(f, k, &s.first);
    return s;
}

/* Returns whether each stretch begins where the one before it ends; *all is then their union. */
static bool
is_one_stretch(const struct xm_intake *f, enum part part, struct stretch *all)
{
    *all = (struct stretch){0, 0};
    for (uint32_t k = 0; k < n_stretches(f); k++) {
        const struct stretch s = stretch_of(f, part, k);
        if (s.n && all->n && s.first != all->first + all->n)
            return false;
        all->first = all->n ? all->first : s.first;
        all->n += s.n;
    }
    return true;
}

/* Returns the first axis of a port that depends on the symbol; the rank: no axis does. */
static uint32_t
axis_of(const struct xm_port *port, const char *symbol)
{
    uint32_t i = 0;
    while (i < port->type.shape.rank &&
           !xm_dim_has_symbol(port->type.shape.dim[i], symbol))
        i++;
    return i;
}

/* Returns whether the axes [batch, tokens] of a port's tensor count as one axis, because packed
 * rows are concatenated along the tokens. `axis`: the axis of tokens. */
static bool
joins_rows(const struct xm_intake *f, const struct xm_port *port, uint32_t axis)
{
    return f->is_packed && axis > 0 &&
           xm_dim_is_symbol(port->type.shape.dim[axis - 1], XM_SYMBOL_BATCH);
}

/* A tensor seen as [outer, places, bytes]: `places` counts the elements along the axis of tokens,
 * `bytes` is the size of one of them with all inner axes. */
struct layout {
    uint64_t outer, places, bytes;
};

static struct layout
layout_of(const struct xm_intake *f, const struct xm_port *port, uint32_t axis,
          const struct xm_host_tensor *t)
{
    const uint32_t first = axis - joins_rows(f, port, axis);
    struct layout l = {1, 1, xm_element_bits(t->element) / 8};
    for (uint32_t i = 0; i < t->rank; i++)
        *(i < first ? &l.outer : i <= axis ? &l.places : &l.bytes) *= (uint64_t)t->dim[i];
    return l;
}

/* Copies the stretches from the run's tensor to the chunk's, or back. */
static void
move(const struct xm_intake *f, enum part part, const struct layout *l, uint8_t *whole,
     uint8_t *chunk, bool to_chunk)
{
    for (uint64_t o = 0; o < l->outer; o++) {
        for (uint32_t k = 0; k < n_stretches(f); k++) {
            const struct stretch s = stretch_of(f, part, k);
            uint8_t *w = whole + (o * l->places + s.first) * l->bytes;
            memcpy(to_chunk ? chunk : w, to_chunk ? w : chunk, s.n * l->bytes);
            chunk += s.n * l->bytes;
        }
    }
}

/* ---- inputs of a chunk -------------------------------------------------------------------- */

/* Gives input i of the chunk memory of its own, which the request keeps in r->cut[i]. */
static enum xm_status
make_own(struct xm_request *r, uint32_t i, struct xm_error *err)
{
    struct xm_host_tensor *part = &r->chunk[i], *own = &r->cut[i];
    const uint64_t room = own->bytes;
    part->data = own->data;
    part->bytes = own->bytes;
    const enum xm_status s = xm_request_resize(part, err);
    own->data = part->data;
    own->bytes = part->bytes > room ? part->bytes : room;
    return s;
}

/* Fills t with the indices, among the chunk's tokens, of those whose results are wanted. Sets
 * r->first_chosen. */
static void
number_rows(struct xm_request *r, const struct xm_intake *f,
            const struct xm_host_tensor *t)
{
    uint64_t end = 0, at = 0, first;
    for (uint32_t k = 0; k < f->chunk.n; k++) {
        end += f->chunk.tokens[k];
        uint64_t row = end - xm_intake_wanted(f, k, &first);
        for (; row < end; row++, at++) {
            xm_store_int(t->element, t->data, at, (int64_t)row);
            if (row != r->first_chosen + at)
                r->first_chosen = at ? UINT64_MAX : row;
        }
    }
}

/* Returns whether an input has an axis of past + tokens: an element for each position so far. */
static bool
is_context(const struct xm_port *port)
{
    const uint32_t axis = axis_of(port, XM_SYMBOL_TOKENS);
    return axis < port->type.shape.rank &&
           !xm_dim_is_symbol(port->type.shape.dim[axis], XM_SYMBOL_TOKENS);
}

/* Returns which feed input i of a packed chunk is, if its contents are generated for the chunk;
 * XM_N_FEEDS: its contents are copied from the run's tensor. The key mask is generated (all ones,
 * because padding is left out), and so is beam_idx (one row). */
static int
feed_of(const struct xm_program *p, const struct xm_intake *f, uint32_t i)
{
    const struct xm_port *port = &p->ports.inputs[i];
    int feed = 0;
    if (!f->is_packed)
        return XM_N_FEEDS;
    if (f->tensors)
        return is_context(port)                                      ? XM_FEED_MASK
               : p->beam_idx && strcmp(port->name, p->beam_idx) == 0 ? XM_FEED_BEAMS
                                                                     : XM_N_FEEDS;
    while (f->ports[feed] != i)
        feed++;
    return feed;
}

/* Sets element type and shape of input i for a packed chunk of `tokens` tokens behind `past`
 * positions, with `wanted` results. Its data stays NULL. */
static void
shape_feed(struct xm_request *r, uint32_t i, int feed, uint64_t past, uint64_t tokens,
           uint64_t wanted)
{
    const struct xm_port *port = &r->program->ports.inputs[i];
    const uint64_t n = feed == XM_FEED_BEAMS     ? 1
                       : feed == XM_FEED_SAMPLES ? wanted
                       : is_context(port)        ? past + tokens
                                                 : tokens;
    struct xm_host_tensor *t = &r->chunk[i];
    *t = (struct xm_host_tensor){.element = port->type.element,
                                 .rank = port->type.shape.rank};
    for (uint32_t d = 0; d < t->rank; d++)
        t->dim[d] = d + 1 < t->rank ? 1 : (int64_t)n;
}

/* Fills an input with its contents for the packed chunk: ones (mask), zeros (beam index), token ids
 * or positions. */
static void
fill_feed(const struct xm_intake *f, int feed, const struct xm_host_tensor *t)
{
    const uint64_t n = (uint64_t)t->dim[t->rank - 1];
    uint64_t at = 0;
    if (feed == XM_FEED_MASK || feed == XM_FEED_BEAMS) {
        for (; at < n; at++)
            xm_store_int(t->element, t->data, at, feed == XM_FEED_MASK);
        return;
    }
    for (uint32_t k = 0; k < f->chunk.n; k++) {
        const struct xm_intake_row *row = &f->rows[f->chunk.row[k]];
        const uint64_t past = xm_kv_sequence_past(row->sequence);
        for (uint64_t i = 0; i < f->chunk.tokens[k]; i++, at++)
            xm_store_int(t->element, t->data, at,
                         feed == XM_FEED_IDS ? row->ids[row->done + i]
                                             : (int64_t)(past + i));
    }
}

static enum xm_status
make_feed(struct xm_request *r, const struct xm_intake *f, uint32_t i, int feed,
          struct xm_error *err)
{
    shape_feed(r, i, feed, xm_intake_past(f), f->chunk.length, f->chunk.wanted);
    XM_TRY(make_own(r, i, err));
    if (feed == XM_FEED_SAMPLES)
        number_rows(r, f, &r->chunk[i]);
    else
        fill_feed(f, feed, &r->chunk[i]);
    return xm_port_check_rows(&r->program->ports.inputs[i], &r->chunk[i], err);
}

/* Makes input i of a chunk. An axis of `tokens` is cut to the chunk's tokens; with rows side by
 * side an axis of past + tokens is cut at the end of the chunk. A part that is contiguous in the
 * run's tensor is not copied. */
static enum xm_status
cut_input(struct xm_request *r, const struct xm_intake *f, uint32_t i,
          struct xm_error *err)
{
    const struct xm_port *port = &r->program->ports.inputs[i];
    const uint32_t axis = axis_of(port, XM_SYMBOL_TOKENS);
    const int feed = feed_of(r->program, f, i);
    if (feed != XM_N_FEEDS)
        return make_feed(r, f, i, feed, err);
    const struct xm_host_tensor *whole = &f->tensors[i];
    struct xm_host_tensor *part = &r->chunk[i];
    struct stretch all;
    *part = *whole;
    if (axis == whole->rank)
        return XM_OK;
    const enum part kind = is_context(port) ? CONTEXT : TOKENS;
    const struct layout l = layout_of(f, port, axis, whole);
    const bool is_one = is_one_stretch(f, kind, &all) && l.outer == 1;
    part->dim[axis] = f->is_packed ? (int64_t)f->chunk.length : (int64_t)all.n;
    if (joins_rows(f, port, axis))
        part->dim[axis - 1] = 1;
    if (is_one) {
        part->data = (uint8_t *)whole->data + all.first * l.bytes;
        part->bytes = all.n * l.bytes;
        return XM_OK;
    }
    XM_TRY(make_own(r, i, err));
    move(f, kind, &l, whole->data, part->data, true);
    return XM_OK;
}

/* ---- results ----------------------------------------------------------------------------- */

/* Returns whether each chunk computes a part of result i, along *axis. The last chunk computes all
 * of the other results, or they must not be asked for. */
static bool
comes_in_parts(const struct xm_request *r, const struct xm_intake *f, uint32_t i,
               uint32_t *axis)
{
    const struct xm_program *p = r->program;
    const bool is_chosen = p->chosen_rows != XM_NO_VALUE;
    *axis =
        axis_of(&p->ports.outputs[i], is_chosen ? XM_SYMBOL_SAMPLES : XM_SYMBOL_TOKENS);
    return xm_intake_is_cut(f) && !xm_engine_only_counts(p->engine) &&
           !(is_chosen && i > 0) && *axis < p->ports.outputs[i].type.shape.rank;
}

/* Makes the tensors of results that come in parts, with their shapes under the bindings of the
 * whole run. The results of padding are zeros. */
static enum xm_status
make_results(struct xm_request *r, const struct xm_intake *f, struct xm_error *err)
{
    const bool has_padding = f->is_packed && f->all < f->n * f->tokens;
    uint32_t axis;
    for (uint32_t i = 0; i < r->program->ports.n_outputs; i++) {
        struct xm_result *result = &r->results[i];
        if (!comes_in_parts(r, f, i, &axis))
            continue;
        xm_request_describe_result(r, i);
        XM_TRY(xm_request_resize(&result->tensor, err));
        if (has_padding)
            memset(result->tensor.data, 0, result->tensor.bytes);
        result->state = XM_RESULT_READ;
    }
    return XM_OK;
}

/* Reads the chunk's rows of result i from the device to their places in the whole result. */
static enum xm_status
read_rows(struct xm_request *r, const struct xm_intake *f, uint32_t i, uint32_t axis,
          struct xm_error *err)
{
    struct xm_host_tensor *whole = &r->results[i].tensor;
    const struct layout l = layout_of(f, &r->program->ports.outputs[i], axis, whole);
    struct xm_host_tensor part = *whole;
    struct xm_operand o;
    struct stretch all;
    xm_request_operand(r, r->program->output_values[i], &o);
    if (is_one_stretch(f, RESULTS, &all) && l.outer == 1)
        return xm_request_read(r, &o, (uint8_t *)whole->data + all.first * l.bytes, err);
    part.data = NULL;
    memcpy(part.dim, o.dim, sizeof(part.dim));
    XM_TRY(xm_request_resize(&part, err));
    const enum xm_status s = xm_request_read(r, &o, part.data, err);
    if (s == XM_OK)
        move(f, RESULTS, &l, whole->data, part.data, false);
    xm_free(part.data);
    return s;
}

/* Reads the results of a chunk, and waits until the chunk has ended. */
static enum xm_status
collect(struct xm_request *r, const struct xm_intake *f, struct xm_error *err)
{
    const uint64_t n = f->is_packed ? f->chunk.wanted : f->chunk.length;
    bool has_waited = false; /* the queue is empty */
    uint32_t axis;
    for (uint32_t i = 0; i < r->program->ports.n_outputs && n; i++) {
        if (!comes_in_parts(r, f, i, &axis))
            continue;
        XM_TRY(read_rows(r, f, i, axis, err));
        has_waited = true;
    }
    if (xm_intake_is_last(f))
        XM_TRY(xm_request_collect(r, &has_waited, err));
    return has_waited ? XM_OK : xm_queue_finish(r->queue, err);
}

void
xm_request_forget_results(struct xm_request *r)
{
    for (uint32_t i = 0; i < r->program->ports.n_outputs; i++)
        r->results[i].state = XM_RESULT_NONE;
}

/* ---- runs ---------------------------------------------------------------------------------- */

static enum xm_status
fill_inputs(struct xm_request *r, const struct xm_intake *f, struct xm_error *err)
{
    for (uint32_t i = 0; i < r->program->ports.n_inputs; i++)
        XM_TRY(cut_input(r, f, i, err));
    return xm_request_bind(r, r->chunk, xm_intake_past(f), err);
}

static enum xm_status
run_chunk(struct xm_request *r, struct xm_intake *f, struct xm_error *err)
{
    const bool is_cut = xm_intake_is_cut(f);
    r->watch.done = f->done;
    r->watch.all = f->all;
    r->first_chosen = UINT64_MAX;
    if (is_cut)
        XM_TRY(fill_inputs(r, f, err));
    XM_TRY(xm_intake_reserve(f, r->queue, err));
    XM_TRY(xm_request_run_chunk(r, is_cut ? r->chunk : f->tensors, &f->chunk, err));
    XM_TRY(collect(r, f, err));
    xm_intake_commit(f);
    return XM_OK;
}

static enum xm_status
run_chunks(struct xm_request *r, struct xm_intake *f, struct xm_error *err)
{
    xm_request_forget_results(r);
    XM_TRY(xm_intake_begin(f, r->program->kv_pool, err));
    XM_TRY(make_results(r, f, err));
    while (xm_intake_next(f))
        XM_TRY(run_chunk(r, f, err));
    /* if all tokens are padding, there is no chunk, and results are zeros */
    return f->is_packed && f->all == 0 ? collect(r, f, err) : XM_OK;
}

/* Cleans up after a failed run: waits for the queue and restores the sequences. States on the host
 * cannot be restored, and are emptied. */
static void
give_up(struct xm_request *r, struct xm_intake *f)
{
    xm_queue_finish(r->queue, NULL);
    xm_intake_cancel(f, r->program->kv_pool);
    xm_request_forget_results(r);
    if (r->program->host_states)
        xm_state_store_reset(r->states);
}

/* Runs all chunks once, with the program's expert caches if they are free, and adds the run's
 * counts to the statistics. The queue is empty afterwards, also after a failure. */
static enum xm_status
run_once(struct xm_request *r, struct xm_intake *f, struct xm_error *err)
{
    const struct xm_run_counts before = xm_request_counts(r);
    enum xm_status s = xm_expert_caches_take(r->program, r->queue, &r->has_caches, err);
    if (s == XM_OK)
        s = run_chunks(r, f, err);
    if (s != XM_OK)
        give_up(r, f);
    xm_intake_end(f);
    const struct xm_run_counts run = xm_request_take_back(r, &before);
    xm_request_add(r, &run);
    if (r->has_caches)
        xm_expert_caches_give_back(r->program, s == XM_OK);
    r->has_caches = false;
    return s;
}

/* If the device is a part of a processor, this thread moves to the cores of that part for the run:
 * on cores of another part it would compete with the threads that compute there. A run that lacks
 * memory is repeated without the expert caches. */
enum xm_status
xm_request_run(struct xm_request *r, struct xm_intake *f, struct xm_error *err)
{
    struct xm_program *p = r->program;
    struct xm_cores_before cores;
    const struct xm_bindings whole = r->bindings;
    /* A failed run empties states on the host, so a run that needs their contents cannot be
     * repeated. */
    const bool again = !p->host_states || xm_request_past(r) == 0;
    const uint64_t exchanged = r->n_exchanges;
    struct xm_error cause = {0};
    xm_cores_enter(xm_engine_info(p->engine)->cores, &cores);
    enum xm_status s = run_once(r, f, &cause);
    /* A run that has exchanged values cannot be repeated either: other ranks would not repeat
     * it. */
    if (s == XM_NO_MEMORY && xm_expert_caches_drop(p) && again &&
        r->n_exchanges == exchanged) {
        cause = (struct xm_error){0};
        r->bindings = whole;
        s = run_once(r, f, &cause);
    }
    xm_cores_leave(&cores);
    return s == XM_OK ? s : xm_fail(err, s, "%s", cause.text);
}

enum xm_status
xm_request_run_sequences(struct xm_request *r, struct xm_intake *f, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    for (uint32_t i = 0; i < p->ports.n_inputs; i++)
        shape_feed(r, i, feed_of(p, f, i), 0, f->all, f->wanted);
    XM_TRY(xm_request_bind(r, r->chunk, 0, err));
    r->mask_is_full = true;
    return xm_request_run(r, f, err);
}
