/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/batcher.h"

#include <inttypes.h>

#include "plugin/feeds.h"
#include "plugin/gpu/ahead.h"
#include "plugin/gpu/request.h"
#include "transformations/graph/symbols.h"

struct xm_batcher {
    struct xm_program *program;
    struct xm_request *request;
    uint32_t port[XM_N_FEEDS]; /* input of a feed; UINT32_MAX: the model has none */
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
                           "input '%s' has element type %s and rank %u, expected "
                           "integers of rank %u",
                           xm_feed_names[f], xm_element_text(t->element), t->shape.rank,
                           rank_of(f));
    }
    return b->port[XM_FEED_SAMPLES] != UINT32_MAX
               ? XM_OK
               : xm_fail(err, XM_UNSUPPORTED,
                         "the model is not compiled for sequences: compile it with "
                         "XM_SEQUENCES=YES");
}

static enum xm_status
check_program(const struct xm_program *p, struct xm_error *err)
{
    if (!p->kv_pool || p->host_states)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the model has %s, so sequences cannot hold its context",
                       p->kv_pool ? "states that are not a KV cache" : "no states");
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
    xm_intake_free(&b->intake);
    xm_program_unref(b->program);
    xm_free(b);
}

struct xm_request *
xm_batcher_request(struct xm_batcher *b)
{
    return b->request;
}

/* ---- what a run is asked for ------------------------------------------------------------ */

static enum xm_status
check_entries(const struct xm_batcher_entry *list, uint32_t n, struct xm_error *err)
{
    if (n == 0)
        return xm_fail(err, XM_INVALID, "a run of no sequences");
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].n == 0)
            return xm_fail(err, XM_INVALID, "there are no tokens to run for sequence %u",
                           i);
        if (list[i].n > INT32_MAX)
            return xm_fail(err, XM_INVALID,
                           "sequence %u: %" PRIu64
                           " tokens are too many, at most 2^31 - 1 are supported",
                           i, list[i].n);
        if (list[i].wanted > list[i].n)
            return xm_fail(err, XM_INVALID,
                           "sequence %u: the logits of %" PRIu64
                           " tokens are requested, but only %" PRIu64 " tokens are run",
                           i, list[i].wanted, list[i].n);
    }
    return XM_OK;
}

/* ---- a run -------------------------------------------------------------------------------- */

enum xm_status
xm_batcher_run(struct xm_batcher *b, const struct xm_batcher_entry *list, uint32_t n,
               struct xm_error *err)
{
    xm_batcher_stop(b, NULL);
    b->n = 0;
    XM_TRY(check_entries(list, n, err));
    XM_TRY(xm_intake_of_ids(&b->intake, b->program, b->port, n, err));
    for (uint32_t i = 0; i < n; i++)
        xm_intake_add(&b->intake, list[i].sequence, list[i].ids, list[i].n,
                      list[i].wanted);
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

/* Returns whether the last run was one chunk with exactly one token of each of these n sequences,
 * in this order, the logits of which are wanted. */
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
                       "the last run of the batch was not one token for each sequence");
    if (create_ahead(b, &why) != XM_OK)
        return xm_fail(err, XM_UNSUPPORTED, "%s", why.text);
    const enum xm_status status = xm_ahead_choose(b->ahead, sequences, c, err);
    b->n = status == XM_UNSUPPORTED ? b->n : 0; /* else the logits are overwritten */
    return status;
}

void
xm_batcher_stop(struct xm_batcher *b, const struct xm_kv_sequence *s)
{
    if (b->ahead)
        xm_ahead_stop(b->ahead, s);
}
