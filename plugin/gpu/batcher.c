/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/batcher.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/feeds.h"
#include "plugin/gpu/expert_caches.h"
#include "plugin/gpu/request_run.h"
#include "primitives/form.h"
#include "transformations/graph/symbols.h"

struct tensor {
    int64_t *values;
    uint64_t room;
    void *bytes; /* of the port's element type */
};

/* What is known of an entry while it runs. */
struct progress {
    uint64_t done;                 /* tokens */
    uint64_t first;                /* row of the logits */
    uint64_t read;                 /* rows of them that have come */
    uint64_t past;                 /* before the run */
    struct xm_kv_sequence *before; /* of those longer than windows reach back */
};

/* A step: the next `tokens` of some entries, in the order of their rows. */
struct step {
    uint32_t *entry, *tokens;
    struct xm_kv_sequence **sequences;
    uint32_t n;
    uint64_t rows, samples;
};

struct xm_batcher {
    struct xm_program *program;
    struct xm_request *request;
    uint32_t port[XM_N_FEEDS]; /* UINT32_MAX: the model has no such input */
    struct tensor feed[XM_N_FEEDS];
    struct progress *progress;
    struct step step;
    uint32_t room; /* entries */
    uint32_t n;    /* of the last run */
    float *logits;
    uint64_t logits_room, vocabulary, wanted; /* rows, of the run */
};

/* ---- making and freeing -------------------------------------------------------------- */

static uint32_t
rank_of(int feed)
{
    return feed == XM_FEED_BEAMS || feed == XM_FEED_SAMPLES ? 1 : 2;
}

static enum xm_status
find_ports(struct xm_batcher *b, struct xm_error *err)
{
    const struct xm_program *p = b->program;
    XM_TRY(xm_feeds_find(p->ports.inputs, p->ports.n_inputs, b->port, err));
    for (int f = 0; f < XM_N_FEEDS; f++) {
        const struct xm_type *t =
            b->port[f] == UINT32_MAX ? NULL : &p->ports.inputs[b->port[f]].type;
        if (t && (t->shape.rank != rank_of(f) || !xm_element_is_int(t->element)))
            return xm_fail(err, XM_UNSUPPORTED,
                           "input '%s' is %s of rank %u, expected integers of rank %u",
                           xm_feed_names[f], xm_element_text(t->element), t->shape.rank,
                           rank_of(f));
    }
    return b->port[XM_FEED_SAMPLES] != UINT32_MAX
               ? XM_OK
               : xm_fail(err, XM_UNSUPPORTED,
                         "the model has not been compiled for sequences "
                         "(XM_SEQUENCES=YES)");
}

static enum xm_status
check_program(const struct xm_program *p, struct xm_error *err)
{
    if (!p->kv_pool || p->host_states)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the model has %s: its context cannot be kept by sequences",
                       p->kv_pool ? "states that no attention reads" : "no states");
    if (p->ports.n_outputs == 0 || p->ports.outputs[0].type.element != XM_F32 ||
        p->ports.outputs[0].type.shape.rank != 3)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the first result is not f32 logits [batch,tokens,vocabulary]");
    return XM_OK;
}

enum xm_status
xm_batcher_create(struct xm_program *p, struct xm_batcher **out, struct xm_error *err)
{
    XM_TRY(check_program(p, err));
    struct xm_batcher *b = xm_calloc(1, sizeof(*b));
    if (!b)
        return xm_no_memory(err, "a batch");
    b->program = p;
    xm_program_ref(p);
    enum xm_status s = find_ports(b, err);
    if (s == XM_OK)
        s = xm_request_create(p, &b->request, err);
    if (s != XM_OK) {
        xm_batcher_destroy(b);
        return s;
    }
    *out = b;
    return XM_OK;
}

void
xm_batcher_destroy(struct xm_batcher *b)
{
    if (!b)
        return;
    xm_request_destroy(b->request);
    for (int f = 0; f < XM_N_FEEDS; f++) {
        xm_free(b->feed[f].values);
        xm_free(b->feed[f].bytes);
    }
    xm_free(b->progress);
    xm_free(b->step.entry);
    xm_free(b->step.tokens);
    xm_free(b->step.sequences);
    xm_free(b->logits);
    xm_program_unref(b->program);
    xm_free(b);
}

struct xm_request *
xm_batcher_request(struct xm_batcher *b)
{
    return b->request;
}

uint64_t
xm_batcher_chunk(const struct xm_program *p)
{
    return p->can_chunk ? p->config.ubatch : UINT64_MAX;
}

/* ---- what a run is asked for ------------------------------------------------------------ */

static enum xm_status
check_entries(const struct xm_batcher_entry *list, uint32_t n, struct xm_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].n == 0)
            return xm_fail(err, XM_INVALID, "there are no tokens to feed to sequence %u",
                           i);
        if (list[i].n > INT32_MAX)
            return xm_fail(err, XM_INVALID,
                           "sequence %u: %" PRIu64 " tokens; 2^31 - 1 are possible", i,
                           list[i].n);
        if (list[i].wanted > list[i].n)
            return xm_fail(err, XM_INVALID,
                           "sequence %u: logits of %" PRIu64
                           " tokens are wanted, %" PRIu64 " are fed",
                           i, list[i].wanted, list[i].n);
    }
    return XM_OK;
}

static int
compare_sequences(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (struct xm_kv_sequence *const *)a;
    const uintptr_t y = (uintptr_t) * (struct xm_kv_sequence *const *)b;
    return (x > y) - (x < y);
}

static enum xm_status
fail_twice(const struct xm_batcher_entry *list, uint32_t n,
           const struct xm_kv_sequence *sequence, struct xm_error *err)
{
    uint32_t at[2] = {0}, found = 0;
    for (uint32_t i = 0; i < n && found < 2; i++) {
        if (list[i].sequence == sequence)
            at[found++] = i;
    }
    return xm_fail(err, XM_INVALID, "sequences %u and %u are the same one", at[0], at[1]);
}

/* Sorted, equal sequences are neighbours. b->step has room for all; the run fills it anew. */
static enum xm_status
check_twice(struct xm_batcher *b, const struct xm_batcher_entry *list, uint32_t n,
            struct xm_error *err)
{
    struct xm_kv_sequence **sorted = b->step.sequences;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = list[i].sequence;
    qsort(sorted, n, sizeof(*sorted), compare_sequences);
    for (uint32_t i = 1; i < n; i++) {
        if (sorted[i] == sorted[i - 1])
            return fail_twice(list, n, sorted[i], err);
    }
    return XM_OK;
}

static bool
grow_list(void *list, size_t n, size_t bytes)
{
    void *larger = xm_realloc(*(void **)list, n * bytes);
    if (larger)
        *(void **)list = larger;
    return larger != NULL;
}

static enum xm_status
make_room(struct xm_batcher *b, uint32_t n, struct xm_error *err)
{
    if (n <= b->room)
        return XM_OK;
    if (!grow_list(&b->progress, n, sizeof(*b->progress)) ||
        !grow_list(&b->step.entry, n, sizeof(*b->step.entry)) ||
        !grow_list(&b->step.tokens, n, sizeof(*b->step.tokens)) ||
        !grow_list(&b->step.sequences, n, sizeof(struct xm_kv_sequence *)))
        return xm_no_memory(err, "a batch of %u sequences", n);
    b->room = n;
    return XM_OK;
}

static enum xm_status
begin(struct xm_batcher *b, const struct xm_batcher_entry *list, uint32_t n,
      struct xm_error *err)
{
    const uint64_t chunk = xm_batcher_chunk(b->program);
    uint64_t rows = 0;
    b->n = 0; /* none has anything to undo */
    if (n == 0)
        return xm_fail(err, XM_INVALID, "a run of no sequences");
    XM_TRY(check_entries(list, n, err));
    XM_TRY(make_room(b, n, err));
    XM_TRY(check_twice(b, list, n, err));
    for (uint32_t i = 0; i < n; i++) {
        b->progress[i] = (struct progress){.first = rows,
                                           .past = xm_kv_sequence_past(list[i].sequence)};
        rows += list[i].wanted;
    }
    b->n = n;
    b->wanted = rows;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].n <= chunk)
            continue;
        xm_kv_pool_expect(b->program->kv_pool, 1, list[i].n);
        if (b->progress[i].past)
            XM_TRY(xm_kv_sequence_fork(list[i].sequence, &b->progress[i].before, err));
    }
    b->vocabulary = 0;
    return XM_OK;
}

/* ---- steps -------------------------------------------------------------------------------- */

static void
add_to_step(struct step *s, uint32_t i, const struct xm_batcher_entry *e, uint64_t done,
            uint64_t tokens)
{
    const uint64_t end = done + tokens, unwanted = e->n - e->wanted;
    s->entry[s->n] = i;
    s->tokens[s->n] = (uint32_t)tokens;
    s->sequences[s->n++] = e->sequence;
    s->rows += tokens;
    if (end > unwanted)
        s->samples += end - (done > unwanted ? done : unwanted);
}

/* The next step: sequences with few tokens first, as attention takes them; then of prompts what
 * has room. */
static bool
choose_step(struct xm_batcher *b, const struct xm_batcher_entry *list)
{
    const uint64_t most = xm_batcher_chunk(b->program);
    const bool is_ragged = b->program->is_ragged;
    struct step *s = &b->step;
    s->n = 0;
    s->rows = s->samples = 0;
    for (int prompts = 0; prompts < 2; prompts++) {
        for (uint32_t i = 0; i < b->n && s->rows < most; i++) {
            const uint64_t left = list[i].n - b->progress[i].done, room = most - s->rows;
            if (left == 0 || (left > XM_FEW_TOKENS) != (prompts == 1) ||
                (s->n && !is_ragged))
                continue;
            add_to_step(s, i, &list[i], b->progress[i].done, left < room ? left : room);
        }
    }
    return s->n > 0;
}

/* Feed f of a step with `n` elements, to be filled in. */
static enum xm_status
shape_feed(struct xm_batcher *b, int f, int64_t n, struct xm_error *err)
{
    struct tensor *t = &b->feed[f];
    if ((uint64_t)n <= t->room)
        return XM_OK;
    const uint64_t room = 2 * (uint64_t)n;
    if (!grow_list(&t->values, room, sizeof(*t->values)) ||
        !grow_list(&t->bytes, room, sizeof(int64_t)))
        return xm_no_memory(err, "input '%s'", xm_feed_names[f]);
    t->room = room;
    return XM_OK;
}

/* Positions of rows, and where those lie whose logits are wanted. */
static void
fill_rows(struct xm_batcher *b, const struct xm_batcher_entry *list)
{
    const struct step *s = &b->step;
    uint64_t row = 0, sample = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        const struct xm_batcher_entry *e = &list[s->entry[k]];
        const uint64_t done = b->progress[s->entry[k]].done;
        const uint64_t past = xm_kv_sequence_past(e->sequence);
        for (uint64_t t = 0; t < s->tokens[k]; t++, row++) {
            b->feed[XM_FEED_IDS].values[row] = e->ids[done + t];
            b->feed[XM_FEED_POSITIONS].values[row] = (int64_t)(past + t);
            if (done + t >= e->n - e->wanted)
                b->feed[XM_FEED_SAMPLES].values[sample++] = (int64_t)row;
        }
    }
}

/* The tensors of a step in the request, in the port's element types. */
static void
set_inputs(struct xm_batcher *b, const int64_t *counts)
{
    for (int f = 0; f < XM_N_FEEDS; f++) {
        if (b->port[f] == UINT32_MAX)
            continue;
        const enum xm_element e = b->program->ports.inputs[b->port[f]].type.element;
        struct xm_host_tensor *t = &b->request->chunk[b->port[f]];
        const uint32_t rank = rank_of(f);
        *t =
            (struct xm_host_tensor){.element = e, .rank = rank, .data = b->feed[f].bytes};
        t->dim[0] = rank == 2 ? 1 : counts[f];
        t->dim[rank - 1] = counts[f];
        t->bytes = (uint64_t)counts[f] * (xm_element_bits(e) / 8);
        for (int64_t i = 0; i < counts[f]; i++)
            xm_store_int(e, t->data, (uint64_t)i, b->feed[f].values[i]);
    }
}

static enum xm_status
fill_inputs(struct xm_batcher *b, const struct xm_batcher_entry *list,
            struct xm_error *err)
{
    const struct step *s = &b->step;
    /* Positions before the run are no operand of a ragged program. */
    const uint64_t past =
        b->program->is_ragged ? 0 : xm_kv_sequence_past(s->sequences[0]);
    const int64_t rows = (int64_t)s->rows;
    const int64_t counts[XM_N_FEEDS] = {[XM_FEED_IDS] = rows,
                                        [XM_FEED_MASK] = (int64_t)past + rows,
                                        [XM_FEED_POSITIONS] = rows,
                                        [XM_FEED_BEAMS] = 1,
                                        [XM_FEED_SAMPLES] = (int64_t)s->samples};
    for (int f = 0; f < XM_N_FEEDS; f++)
        XM_TRY(shape_feed(b, f, counts[f] ? counts[f] : 1, err));
    for (int64_t i = 0; i < counts[XM_FEED_MASK]; i++)
        b->feed[XM_FEED_MASK].values[i] = 1;
    b->feed[XM_FEED_BEAMS].values[0] = 0;
    fill_rows(b, list);
    set_inputs(b, counts);
    for (uint32_t i = 0; i < b->program->ports.n_inputs; i++)
        XM_TRY(
            xm_port_check_rows(&b->program->ports.inputs[i], &b->request->chunk[i], err));
    struct xm_bindings *bindings = &b->request->bindings;
    bindings->n = 0;
    XM_TRY(xm_bindings_set(bindings, XM_SYMBOL_PAST, (int64_t)past, err));
    return xm_bindings_from_ports(bindings, b->program->ports.inputs, b->request->chunk,
                                  b->program->ports.n_inputs, err);
}

/* Where the rows of a step lie among all: its samples come in the order of its entries. */
static void
place_logits(struct xm_batcher *b, const struct xm_batcher_entry *list, const float *rows)
{
    const struct step *s = &b->step;
    for (uint32_t k = 0; k < s->n; k++) {
        const struct xm_batcher_entry *e = &list[s->entry[k]];
        struct progress *p = &b->progress[s->entry[k]];
        const uint64_t end = p->done + s->tokens[k], unwanted = e->n - e->wanted;
        const uint64_t begin = p->done > unwanted ? p->done : unwanted;
        const uint64_t n = end > begin ? end - begin : 0;
        memcpy(b->logits + (p->first + p->read) * b->vocabulary, rows,
               n * b->vocabulary * sizeof(*rows));
        rows += n * b->vocabulary;
        p->read += n;
    }
}

/* The only step with wanted rows says where they are. */
static void
order_rows(struct xm_batcher *b, const struct xm_batcher_entry *list)
{
    uint64_t row = 0;
    for (uint32_t k = 0; k < b->step.n; k++) {
        struct progress *p = &b->progress[b->step.entry[k]];
        p->first = row;
        p->read = list[b->step.entry[k]].wanted;
        row += p->read;
    }
}

/* All wanted rows of a run, from the size that the first step's turn out to have. */
static enum xm_status
make_logits(struct xm_batcher *b, uint64_t vocabulary, struct xm_error *err)
{
    uint64_t n = 0;
    b->vocabulary = vocabulary;
    if (!xm_mul_size(b->wanted, vocabulary, &n) || n > SIZE_MAX / sizeof(float))
        return xm_fail(err, XM_NO_MEMORY, "%" PRIu64 " rows of logits", b->wanted);
    if (n > b->logits_room) {
        if (!grow_list(&b->logits, n, sizeof(*b->logits)))
            return xm_no_memory(err, "%" PRIu64 " logits", n);
        b->logits_room = n;
    }
    return XM_OK;
}

/* Waits for the step, and takes its logits. The rows of a step that has all of them stay where they
 * come, in its entries' order. */
static enum xm_status
read_step(struct xm_batcher *b, const struct xm_batcher_entry *list, struct xm_error *err)
{
    struct xm_request *r = b->request;
    struct xm_operand o;
    if (b->step.samples == 0 || xm_engine_only_counts(b->program->engine))
        return xm_queue_finish(r->queue, err);
    xm_request_operand(r, b->program->output_values[0], &o);
    if (b->vocabulary == 0)
        XM_TRY(make_logits(b, (uint64_t)o.dim[2], err));
    if (b->step.samples == b->wanted) {
        order_rows(b, list);
        return xm_request_read(r, &o, b->logits, err);
    }
    float *rows = xm_malloc(b->step.samples * b->vocabulary * sizeof(*rows));
    if (!rows)
        return xm_no_memory(err, "a step's logits");
    enum xm_status s = xm_request_read(r, &o, rows, err);
    if (s == XM_OK)
        place_logits(b, list, rows);
    xm_free(rows);
    return s;
}

/* The first row that is wanted in a step, where the others follow it; UINT64_MAX: they do not. */
static uint64_t
first_sample(const struct xm_batcher *b)
{
    const int64_t *rows = b->feed[XM_FEED_SAMPLES].values;
    const uint64_t n = b->step.samples;
    return n && rows[n - 1] - rows[0] == (int64_t)n - 1 ? (uint64_t)rows[0] : UINT64_MAX;
}

/* Of the run, before this step; for who watches. */
static void
count_tokens(struct xm_batcher *b, const struct xm_batcher_entry *list)
{
    b->request->watch.done = b->request->watch.all = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        b->request->watch.done += b->progress[i].done;
        b->request->watch.all += list[i].n;
    }
}

static enum xm_status
run_step(struct xm_batcher *b, const struct xm_batcher_entry *list, struct xm_error *err)
{
    const struct step *s = &b->step;
    XM_TRY(fill_inputs(b, list, err));
    count_tokens(b, list);
    const struct xm_request_rows rows = {s->sequences, s->tokens, s->n, first_sample(b)};
    XM_TRY(xm_request_run_rows(b->request, b->request->chunk, &rows, err));
    XM_TRY(read_step(b, list, err));
    for (uint32_t k = 0; k < s->n; k++) {
        struct progress *p = &b->progress[s->entry[k]];
        xm_kv_sequence_commit(s->sequences[k], list[s->entry[k]].ids + p->done);
        p->done += s->tokens[k];
    }
    return XM_OK;
}

/* ---- a run -------------------------------------------------------------------------------- */

/* Nothing of the run is left: not in the queue, not in the sequences. */
static void
give_up(struct xm_batcher *b, const struct xm_batcher_entry *list)
{
    xm_queue_finish(b->request->queue, NULL);
    for (uint32_t i = 0; i < b->n; i++) {
        xm_kv_sequence_cancel(list[i].sequence);
        if (b->progress[i].before)
            xm_kv_sequence_swap(list[i].sequence, b->progress[i].before);
        else
            xm_kv_sequence_truncate(list[i].sequence, b->progress[i].past);
    }
    if (b->n)
        xm_kv_pool_expect_none(b->program->kv_pool);
}

static void
end(struct xm_batcher *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        xm_kv_sequence_destroy(b->progress[i].before);
        b->progress[i].before = NULL;
    }
}

static enum xm_status
run_steps(struct xm_batcher *b, const struct xm_batcher_entry *list, uint32_t n,
          struct xm_error *err)
{
    XM_TRY(begin(b, list, n, err));
    while (choose_step(b, list))
        XM_TRY(run_step(b, list, err));
    return XM_OK;
}

static enum xm_status
run_once(struct xm_batcher *b, const struct xm_batcher_entry *list, uint32_t n,
         struct xm_error *err)
{
    struct xm_request_work work;
    XM_TRY(xm_request_begin_work(b->request, &work, err));
    const enum xm_status s = run_steps(b, list, n, err);
    if (s != XM_OK)
        give_up(b, list);
    end(b);
    b->n = s == XM_OK ? n : 0;
    xm_request_end_work(b->request, &work, s == XM_OK);
    return s;
}

enum xm_status
xm_batcher_run(struct xm_batcher *b, const struct xm_batcher_entry *list, uint32_t n,
               struct xm_error *err)
{
    struct xm_error cause = {0};
    enum xm_status s = run_once(b, list, n, &cause);
    if (s == XM_NO_MEMORY && xm_expert_caches_drop(b->program)) {
        cause = (struct xm_error){0};
        s = run_once(b, list, n, &cause);
    }
    return s == XM_OK ? s : xm_fail(err, s, "%s", cause.text);
}

const float *
xm_batcher_logits(const struct xm_batcher *b, uint32_t entry, uint64_t *rows,
                  uint64_t *vocabulary)
{
    const bool is_there = entry < b->n && b->progress[entry].read > 0;
    *rows = is_there ? b->progress[entry].read : 0;
    *vocabulary = b->vocabulary;
    return is_there ? b->logits + b->progress[entry].first * b->vocabulary : NULL;
}
