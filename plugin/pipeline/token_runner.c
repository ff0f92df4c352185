/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/token_runner.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/pipeline/feed_request.h"
#include "runtime/dry_run.h"

struct xm_token_runner {
    struct xm_compiled *compiled;
    struct xm_sequence *sequence;    /* of the batch; NULL: the text is a request */
    struct xm_batch *batch;          /* NULL: the text is a request */
    struct xm_feed_request *request; /* NULL: the text is a sequence */
    struct xm_infer *infer;          /* of the batch or the request; not owned */
    struct xm_token_rows logits;     /* of the last feed */
};

/* Creates the text as a sequence, or as a request if the model does not support sequences. */
static enum xm_status
begin_text(struct xm_token_runner *r, struct xm_error *err)
{
    struct xm_error why = {0};
    enum xm_status s = xm_compiled_create_batch(r->compiled, &r->batch, &why);
    if (s == XM_OK)
        s = xm_compiled_create_sequence(r->compiled, &r->sequence, &why);
    if (s == XM_OK)
        r->infer = r->batch->control;
    if (s != XM_UNSUPPORTED)
        return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
    xm_compiled_destroy_batch(r->batch);
    r->batch = NULL;
    XM_TRY(xm_feed_request_create(r->compiled, &r->request, err));
    r->infer = xm_feed_request_infer(r->request);
    return XM_OK;
}

enum xm_status
xm_token_runner_create(struct xm_compiled *compiled, struct xm_token_runner **out,
                       struct xm_error *err)
{
    struct xm_token_runner *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_no_memory(err, "a run of tokens");
    r->compiled = compiled;
    xm_compiled_ref(compiled);
    const enum xm_status s = begin_text(r, err);
    if (s == XM_OK)
        *out = r;
    else
        xm_token_runner_destroy(r);
    return s;
}

void
xm_token_runner_destroy(struct xm_token_runner *r)
{
    if (!r)
        return;
    /* the batch first, because it may be running a token of the sequence */
    xm_compiled_destroy_batch(r->batch);
    xm_compiled_destroy_sequence(r->sequence);
    xm_feed_request_destroy(r->request);
    xm_compiled_unref(r->compiled);
    xm_free(r);
}

/* ---- logits ---- */

/* Counts bad and finite values instead of stopping at the first bad one, so that compilers can
 * vectorise the loop. */
static void
count_logits(const float *logits, uint64_t n, int *bad, int *finite)
{
    int b = 0, f = 0;
    for (uint64_t i = 0; i < n; i++) {
        b += !(logits[i] < INFINITY);
        f += logits[i] > -INFINITY;
    }
    *bad = b;
    *finite = f;
}

bool
xm_logits_are_sound(const float *row, uint64_t n)
{
    enum { AT_ONCE = 4096 };
    bool is_any = false;
    for (uint64_t first = 0; first < n; first += AT_ONCE) {
        int bad, finite;
        count_logits(row + first, n - first < AT_ONCE ? n - first : AT_ONCE, &bad,
                     &finite);
        if (bad)
            return false;
        is_any |= finite > 0;
    }
    return is_any;
}

static bool
is_f16(struct xm_compiled *c)
{
    struct xm_strbuf precision = {0};
    const bool is =
        c->ops->get_property &&
        c->ops->get_property(c, "INFERENCE_PRECISION_HINT", &precision, NULL) == XM_OK &&
        strcmp(xm_strbuf_text(&precision), "f16") == 0;
    xm_strbuf_free(&precision);
    return is;
}

enum xm_status
xm_logits_fail(struct xm_compiled *c, uint64_t position, struct xm_error *err)
{
    return xm_fail(err, XM_NOT_FINITE,
                   "the logits of position %" PRIu64 " are not finite: %s", position,
                   is_f16(c)
                       ? "f16 activations overflow, in which case "
                         "INFERENCE_PRECISION_HINT=f32 helps, or weights are not finite"
                       : "activations overflow f32, or weights are not finite");
}

enum xm_status
xm_logits_check(struct xm_compiled *c, const float *row, uint64_t vocabulary,
                uint64_t position, struct xm_error *err)
{
    return xm_logits_are_sound(row, vocabulary) ? XM_OK
                                                : xm_logits_fail(c, position, err);
}

/* Checks the rows of the positions up to `end`. In a dry run there is nothing to check. */
static enum xm_status
check_logits(const struct xm_token_runner *r, const struct xm_token_rows *t, uint64_t end,
             struct xm_error *err)
{
    for (uint64_t row = 0; row < t->rows && !xm_dry_run(); row++)
        XM_TRY(xm_logits_check(r->compiled, t->logits + row * t->vocabulary,
                               t->vocabulary, end - t->rows + row, err));
    return XM_OK;
}

static enum xm_status
feed(struct xm_token_runner *r, const int32_t *ids, uint64_t n, uint64_t wanted,
     struct xm_token_rows *out, struct xm_error *err)
{
    const struct xm_batch_row row = {r->sequence, ids, n, wanted};
    if (r->request)
        return xm_feed_request(r->request, ids, n, wanted, out, err);
    XM_TRY(r->batch->ops->run(r->batch, &row, 1, err));
    out->logits = r->batch->ops->logits(r->batch, 0, &out->rows, &out->vocabulary);
    return XM_OK;
}

enum xm_status
xm_token_runner_feed(struct xm_token_runner *r, const int32_t *ids, uint64_t n,
                     uint64_t wanted, struct xm_error *err)
{
    struct xm_token_rows rows = {0};
    r->logits = rows; /* invalid from now on: the run overwrites their memory */
    if (n == 0)
        return xm_fail(err, XM_INVALID, "there are no tokens to run");
    XM_TRY(feed(r, ids, n, wanted, &rows, err));
    XM_TRY(check_logits(r, &rows, xm_token_runner_past(r), err));
    r->logits = rows;
    return XM_OK;
}

const float *
xm_token_runner_logits(const struct xm_token_runner *r, uint64_t *rows,
                       uint64_t *vocabulary)
{
    *rows = r->logits.rows;
    *vocabulary = r->logits.vocabulary;
    return r->logits.logits;
}

/* ---- tokens that the device chooses ---- */

void
xm_token_runner_prepare(struct xm_token_runner *r, const struct xm_token_choice *how)
{
    if (r->batch && r->batch->ops->prepare)
        r->batch->ops->prepare(r->batch, how);
}

enum xm_status
xm_token_runner_choose(struct xm_token_runner *r, struct xm_device_choices *c,
                       struct xm_error *err)
{
    if (!r->batch || !r->batch->ops->choose)
        return xm_fail(err, XM_UNSUPPORTED, "the device cannot choose tokens");
    struct xm_device_choice *choice = c->list;
    choice->sequence = r->sequence;
    const enum xm_status s = r->batch->ops->choose(r->batch, c, err);
    if (s != XM_UNSUPPORTED)
        r->logits = (struct xm_token_rows){0};
    if (s != XM_OK)
        return s;
    if (xm_dry_run())
        choice->id = 0; /* nothing was computed; 0 is a valid id */
    return choice->id < 0 ? xm_logits_fail(r->compiled, xm_token_runner_past(r) - 1, err)
                          : XM_OK;
}

void
xm_token_runner_stop(struct xm_token_runner *r)
{
    if (r->batch && r->batch->ops->stop)
        r->batch->ops->stop(r->batch, NULL);
}

/* ---- positions ---- */

uint64_t
xm_token_runner_past(const struct xm_token_runner *r)
{
    return r->sequence ? r->sequence->ops->past(r->sequence)
                       : r->infer->ops->past(r->infer);
}

void
xm_token_runner_truncate(struct xm_token_runner *r, uint64_t past)
{
    r->logits = (struct xm_token_rows){0};
    if (past >= xm_token_runner_past(r))
        return;
    if (r->sequence)
        r->sequence->ops->truncate(r->sequence, past);
    else if (past && r->infer->ops->truncate)
        r->infer->ops->truncate(r->infer, past);
    else
        r->infer->ops->reset(r->infer);
}

enum xm_status
xm_token_runner_match(struct xm_token_runner *r, const int32_t *ids, uint64_t n,
                      struct xm_error *err)
{
    return r->sequence && xm_token_runner_past(r) == 0
               ? r->sequence->ops->match(r->sequence, ids, n, err)
               : XM_OK;
}

struct xm_sequence *
xm_token_runner_sequence(const struct xm_token_runner *r)
{
    return r->sequence;
}

void
xm_token_runner_warm_up(struct xm_compiled *c, uint64_t n)
{
    static const int32_t ids[XM_WARM_UP_TOKENS];
    struct xm_device_choice likeliest = {.id = 0};
    struct xm_device_choices choices = {.list = &likeliest, .n = 1};
    struct xm_token_runner *r = NULL;
    enum xm_status s = xm_token_runner_create(c, &r, NULL);
    if (s == XM_OK && n)
        s = xm_token_runner_feed(r, ids, n < XM_WARM_UP_TOKENS ? n : XM_WARM_UP_TOKENS, 1,
                                 NULL);
    if (s == XM_OK)
        s = xm_token_runner_feed(r, ids, 1, 1, NULL);
    if (s == XM_OK)
        xm_token_runner_choose(r, &choices, NULL);
    xm_token_runner_destroy(r);
}

void
xm_token_runner_expect(const struct xm_token_runner *r, uint64_t positions)
{
    if (r->compiled->ops->expect)
        r->compiled->ops->expect(r->compiled, &positions, 1);
}

struct xm_infer *
xm_token_runner_request(const struct xm_token_runner *r)
{
    return r->infer;
}

uint64_t
xm_compiled_vocabulary(const struct xm_compiled *c)
{
    if (c->ports.n_outputs == 0 || c->ports.outputs[0].type.shape.rank == 0)
        return UINT64_MAX;
    const struct xm_shape *s = &c->ports.outputs[0].type.shape;
    const struct xm_dim last = s->dim[s->rank - 1];
    return xm_dim_is_const(last) && last.n > 0 ? (uint64_t)last.n : UINT64_MAX;
}
