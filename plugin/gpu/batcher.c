/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/batcher.h"

#include <inttypes.h>
#include <stdlib.h>

#include "plugin/feeds.h"
#include "plugin/gpu/ahead.h"
#include "plugin/gpu/request.h"
#include "transformations/graph/symbols.h"

struct xm_batcher {
    struct xm_program *program;
    struct xm_request *request;
    uint32_t port[XM_N_FEEDS];      /* UINT32_MAX: the model has no such input */
    struct xm_host_tensor *tensors; /* by port: integers of all tokens of a run; owned */
    uint64_t room[XM_N_FEEDS];      /* elements that a feed's tensor has room for */
    struct xm_intake intake;
    uint32_t n;             /* entries of the last run, if it has succeeded */
    struct xm_ahead *ahead; /* NULL: no token has been chosen on the device yet */
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
xm_batcher_build_choices(struct xm_program *p, struct xm_error *err)
{
    struct xm_batcher b = {.program = p};
    struct xm_error ignored = {0};
    if (check_program(p, &ignored) != XM_OK || find_ports(&b, &ignored) != XM_OK)
        return XM_OK;
    return xm_ahead_build(p, b.port[XM_FEED_IDS], b.port[XM_FEED_POSITIONS], err);
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
    b->tensors = xm_calloc(p->ports.n_inputs + 1, sizeof(*b->tensors));
    if (s == XM_OK && !b->tensors)
        s = xm_no_memory(err, "a batch");
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
    xm_ahead_destroy(b->ahead);
    xm_request_destroy(b->request);
    for (uint32_t i = 0; b->tensors && i < b->program->ports.n_inputs; i++)
        xm_free(b->tensors[i].data);
    xm_free(b->tensors);
    xm_intake_free(&b->intake);
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
    return xm_intake_chunk_tokens(p);
}

/* ---- what a run is asked for ------------------------------------------------------------ */

static enum xm_status
check_entries(const struct xm_batcher_entry *list, uint32_t n, struct xm_error *err)
{
    if (n == 0)
        return xm_fail(err, XM_INVALID, "a run of no sequences");
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

/* Sorted, equal sequences are neighbours. `sorted` has room for n. */
static enum xm_status
check_twice(struct xm_kv_sequence **sorted, const struct xm_batcher_entry *list,
            uint32_t n, struct xm_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = list[i].sequence;
    qsort(sorted, n, sizeof(*sorted), compare_sequences);
    for (uint32_t i = 1; i < n; i++) {
        if (sorted[i] == sorted[i - 1])
            return fail_twice(list, n, sorted[i], err);
    }
    return XM_OK;
}

/* ---- inputs ------------------------------------------------------------------------------ */

/* The tensor of feed f with n elements, to be filled in; NULL: the model has no such input. */
static enum xm_status
shape_feed(struct xm_batcher *b, enum xm_feed f, uint64_t n, struct xm_host_tensor **out,
           struct xm_error *err)
{
    *out = b->port[f] == UINT32_MAX ? NULL : &b->tensors[b->port[f]];
    if (!*out)
        return XM_OK;
    struct xm_host_tensor *t = *out;
    const enum xm_element e = b->program->ports.inputs[b->port[f]].type.element;
    const uint64_t bytes = xm_element_bits(e) / 8;
    if (n > b->room[f] || !t->data) {
        void *larger = xm_realloc(t->data, (size_t)((2 * n + 1) * bytes));
        if (!larger)
            return xm_no_memory(err, "input '%s'", xm_feed_names[f]);
        t->data = larger;
        b->room[f] = 2 * n;
    }
    t->element = e;
    t->rank = rank_of(f);
    t->dim[0] = 1;
    t->dim[t->rank - 1] = (int64_t)n;
    t->bytes = n * bytes;
    return XM_OK;
}

/* One row of ids, positions and ones, and the numbers of the rows that are wanted, as if all were
 * run at once. */
static enum xm_status
fill_inputs(struct xm_batcher *b, const struct xm_batcher_entry *list, uint64_t tokens,
            uint64_t wanted, struct xm_error *err)
{
    const uint64_t sizes[XM_N_FEEDS] = {[XM_FEED_IDS] = tokens,
                                        [XM_FEED_MASK] = tokens,
                                        [XM_FEED_POSITIONS] = tokens,
                                        [XM_FEED_BEAMS] = 1,
                                        [XM_FEED_SAMPLES] = wanted};
    struct xm_host_tensor *t[XM_N_FEEDS];
    uint64_t row = 0, sample = 0;
    for (int f = 0; f < XM_N_FEEDS; f++)
        XM_TRY(shape_feed(b, f, sizes[f], &t[f], err));
    if (t[XM_FEED_BEAMS])
        xm_store_int(t[XM_FEED_BEAMS]->element, t[XM_FEED_BEAMS]->data, 0, 0);
    for (uint32_t i = 0; i < b->intake.n; i++) {
        const struct xm_batcher_entry *e = &list[i];
        const uint64_t past = xm_kv_sequence_past(e->sequence);
        for (uint64_t k = 0; k < e->n; k++, row++) {
            const int64_t values[XM_N_FEEDS] = {[XM_FEED_IDS] = e->ids[k],
                                                [XM_FEED_MASK] = 1,
                                                [XM_FEED_POSITIONS] =
                                                    (int64_t)(past + k)};
            for (int f = XM_FEED_IDS; f <= XM_FEED_POSITIONS; f++) {
                if (t[f])
                    xm_store_int(t[f]->element, t[f]->data, row, values[f]);
            }
            if (k >= e->n - e->wanted)
                xm_store_int(t[XM_FEED_SAMPLES]->element, t[XM_FEED_SAMPLES]->data,
                             sample++, (int64_t)row);
        }
    }
    return XM_OK;
}

/* ---- a run -------------------------------------------------------------------------------- */

static enum xm_status
take_entries(struct xm_batcher *b, const struct xm_batcher_entry *list, uint32_t n,
             struct xm_error *err)
{
    struct xm_intake *f = &b->intake;
    uint64_t tokens = 0, wanted = 0;
    XM_TRY(check_entries(list, n, err));
    XM_TRY(xm_intake_open(f, b->program, n, err));
    XM_TRY(check_twice(f->chunk.sequences, list, n, err)); /* none has begun */
    f->tensors = b->tensors;
    f->is_packed = f->few_tokens_first = true;
    for (uint32_t i = 0; i < n; i++) {
        f->rows[i] = (struct xm_intake_row){.sequence = list[i].sequence,
                                            .ids = list[i].ids,
                                            .n = list[i].n,
                                            .wanted = list[i].wanted,
                                            .at = tokens,
                                            .result = wanted};
        tokens += list[i].n;
        wanted += list[i].wanted;
    }
    return fill_inputs(b, list, tokens, wanted, err);
}

enum xm_status
xm_batcher_run(struct xm_batcher *b, const struct xm_batcher_entry *list, uint32_t n,
               struct xm_error *err)
{
    xm_batcher_stop(b, NULL);
    b->n = 0;
    XM_TRY(take_entries(b, list, n, err));
    XM_TRY(xm_request_run_sequences(b->request, &b->intake, err));
    b->n = n;
    return XM_OK;
}

const float *
xm_batcher_logits(const struct xm_batcher *b, uint32_t entry, uint64_t *rows,
                  uint64_t *vocabulary)
{
    struct xm_host_tensor t;
    struct xm_error ignored = {0};
    *rows = *vocabulary = 0;
    if (entry >= b->n || xm_request_output(b->request, 0, &t, &ignored) != XM_OK)
        return NULL;
    *rows = b->intake.rows[entry].wanted;
    *vocabulary = (uint64_t)t.dim[2];
    return *rows ? (const float *)t.data + b->intake.rows[entry].result * *vocabulary
                 : NULL;
}

/* ---- tokens that the device chooses ---------------------------------------------------------- */

static enum xm_status
create_ahead(struct xm_batcher *b, struct xm_error *err)
{
    return b->ahead ? XM_OK
                    : xm_ahead_create(b->request, b->port[XM_FEED_IDS],
                                      b->port[XM_FEED_POSITIONS], &b->ahead, err);
}

enum xm_status
xm_batcher_prepare(struct xm_batcher *b, const struct xm_token_choice *how,
                   struct xm_error *err)
{
    XM_TRY(create_ahead(b, err));
    return xm_ahead_prepare(b->ahead, how, err);
}

/* Whether the last run was one chunk with a token of each of these sequences, and of no other. */
static bool
has_run_one_of_each(const struct xm_batcher *b, struct xm_kv_sequence *const *sequences,
                    uint32_t n)
{
    const struct xm_intake *f = &b->intake;
    bool has = n > 0 && b->n == n && n <= f->chunk_tokens && (n == 1 || f->is_mixed);
    for (uint32_t i = 0; i < n && has; i++)
        has = f->rows[i].sequence == sequences[i] && f->rows[i].n == 1 &&
              f->rows[i].wanted == 1;
    return has;
}

enum xm_status
xm_batcher_choose(struct xm_batcher *b, struct xm_kv_sequence *const *sequences,
                  struct xm_device_choices *c, struct xm_error *err)
{
    struct xm_error why = {0};
    if (b->ahead && xm_ahead_decodes(b->ahead, sequences, c->n))
        return xm_ahead_choose(b->ahead, sequences, c, err);
    if (!has_run_one_of_each(b, sequences, c->n))
        return xm_fail(err, XM_UNSUPPORTED,
                       "the batch has run other tokens than one of each sequence");
    if (create_ahead(b, &why) != XM_OK)
        return xm_fail(err, XM_UNSUPPORTED, "%s", why.text);
    const enum xm_status status = xm_ahead_choose(b->ahead, sequences, c, err);
    b->n = status == XM_UNSUPPORTED ? b->n : 0; /* the logits are valid then only */
    return status;
}

void
xm_batcher_stop(struct xm_batcher *b, const struct xm_kv_sequence *s)
{
    if (b->ahead)
        xm_ahead_stop(b->ahead, s);
}
