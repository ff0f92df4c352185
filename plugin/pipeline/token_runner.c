/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/token_runner.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/feeds.h"
#include "runtime/dry_run.h"

struct xm_token_runner {
    struct xm_compiled *compiled;
    struct xm_infer *infer;
    uint32_t input[XM_N_FEEDS]; /* UINT32_MAX: the model has no such input            */
    struct xm_host_tensor feed[XM_N_FEEDS]; /* bytes owned */
    uint64_t room[XM_N_FEEDS];    /* bytes allocated                                   */
    struct xm_host_tensor logits; /* of the last feed; bytes of the request             */
    int64_t fed; /* tokens of the last feed                             */
};

static enum xm_status
find_inputs(struct xm_token_runner *r, struct xm_error *err)
{
    const struct xm_compiled *c = r->compiled;
    XM_TRY(xm_feeds_find(c->ports.inputs, c->ports.n_inputs, r->input, err));
    if (r->input[XM_FEED_SAMPLES] != UINT32_MAX)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the model has been compiled for sequences (XM_SEQUENCES=YES)");
    return c->ports.n_outputs
               ? XM_OK
               : xm_fail(err, XM_UNSUPPORTED, "a model for text generation has a result");
}

enum xm_status
xm_token_runner_create(struct xm_compiled *compiled, struct xm_token_runner **out,
                       struct xm_error *err)
{
    struct xm_token_runner *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a run of tokens");
    r->compiled = compiled;
    xm_compiled_ref(compiled);
    enum xm_status s = find_inputs(r, err);
    if (s == XM_OK)
        s = xm_compiled_create_request(compiled, &r->infer, err);
    if (s != XM_OK) {
        xm_token_runner_destroy(r);
        return s;
    }
    *out = r;
    return XM_OK;
}

void
xm_token_runner_destroy(struct xm_token_runner *r)
{
    if (!r)
        return;
    xm_infer_destroy(r->infer);
    for (int i = 0; i < XM_N_FEEDS; i++)
        xm_free(r->feed[i].data);
    xm_compiled_unref(r->compiled);
    xm_free(r);
}

/* ---- feeding ---- */

static enum xm_status
shape_feed(struct xm_token_runner *r, int i, uint32_t rank, int64_t n,
           struct xm_error *err)
{
    struct xm_host_tensor *t = &r->feed[i];
    t->element = r->compiled->ports.inputs[r->input[i]].type.element;
    t->rank = rank;
    t->dim[0] = rank == 2 ? 1 : n;
    t->dim[1] = n;
    if (!xm_element_is_int(t->element) ||
        !xm_element_bytes(t->element, (uint64_t)n, &t->bytes))
        return xm_fail(err, XM_UNSUPPORTED, "input '%s' is %s, expected integers",
                       xm_feed_names[i], xm_element_text(t->element));
    if (t->bytes > r->room[i]) {
        void *data = xm_realloc(t->data, 2 * t->bytes);
        if (!data)
            return xm_fail(err, XM_NO_MEMORY, "out of memory for input '%s'",
                           xm_feed_names[i]);
        t->data = data;
        r->room[i] = 2 * t->bytes;
    }
    return XM_OK;
}

/* Element k of feed i: the id, a one, the position, sequence 0. */
static int64_t
feed_value(int i, const int32_t *ids, uint64_t past, uint64_t k)
{
    switch (i) {
    case XM_FEED_IDS:
        return ids[k];
    case XM_FEED_MASK:
        return 1;
    case XM_FEED_POSITIONS:
        return (int64_t)(past + k);
    default:
        return 0;
    }
}

static enum xm_status
set_feed(struct xm_token_runner *r, int i, const int32_t *ids, uint64_t n, uint64_t past,
         struct xm_error *err)
{
    uint64_t count = i == XM_FEED_MASK ? past + n : i == XM_FEED_BEAMS ? 1 : n;
    if (r->input[i] == UINT32_MAX)
        return XM_OK;
    XM_TRY(shape_feed(r, i, i == XM_FEED_BEAMS ? 1 : 2, (int64_t)count, err));
    for (uint64_t k = 0; k < count; k++)
        xm_store_int(r->feed[i].element, r->feed[i].data, k, feed_value(i, ids, past, k));
    return r->infer->ops->set_input(r->infer, r->input[i], &r->feed[i], err);
}

/* -inf is a token that the model excludes; every token excluded, +inf and NaN are failures. */
static bool
is_sound(const float *row, int64_t n)
{
    float largest = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(row[i]))
            return false;
        largest = row[i] > largest ? row[i] : largest;
    }
    return isfinite(largest);
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
xm_logits_check(struct xm_compiled *c, const float *row, uint64_t vocabulary,
                uint64_t position, struct xm_error *err)
{
    if (is_sound(row, (int64_t)vocabulary))
        return XM_OK;
    return xm_fail(err, XM_NOT_FINITE,
                   "the logits of position %" PRIu64 " are not finite: %s", position,
                   is_f16(c) ? "f16 activations have overflowed; "
                               "INFERENCE_PRECISION_HINT=f32 has room for them"
                             : "the model's numbers overflow f32");
}

/* A dry run computes nothing that could be looked at. */
static enum xm_status
check_logits(const struct xm_token_runner *r, const struct xm_host_tensor *t,
             uint64_t past, struct xm_error *err)
{
    const uint64_t first = past + (uint64_t)(r->fed - t->dim[1]);
    for (int64_t row = 0; row < t->dim[1] && !xm_dry_run(); row++)
        XM_TRY(xm_logits_check(r->compiled, (const float *)t->data + row * t->dim[2],
                               (uint64_t)t->dim[2], first + (uint64_t)row, err));
    return XM_OK;
}

enum xm_status
xm_token_runner_feed(struct xm_token_runner *r, const int32_t *ids, uint64_t n,
                     struct xm_error *err)
{
    const struct xm_infer_ops *ops = r->infer->ops;
    uint64_t past = ops->past(r->infer);
    r->logits.data = NULL; /* the request's memory, which this run changes */
    if (n == 0)
        return xm_fail(err, XM_INVALID, "there are no tokens to feed");
    for (int i = 0; i < XM_N_FEEDS; i++)
        XM_TRY(set_feed(r, i, ids, n, past, err));
    XM_TRY(ops->infer(r->infer, err));
    struct xm_host_tensor t;
    XM_TRY(ops->output(r->infer, 0, &t, err));
    if (t.element != XM_F32 || t.rank != 3 || t.dim[0] != 1)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the first result is %s of rank %u, expected f32 logits "
                       "[1,tokens,vocabulary]",
                       xm_element_text(t.element), t.rank);
    r->fed = (int64_t)n;
    XM_TRY(check_logits(r, &t, past, err));
    r->logits = t;
    return XM_OK;
}

const float *
xm_token_runner_logits(const struct xm_token_runner *r, uint64_t *rows,
                       uint64_t *vocabulary)
{
    *rows = r->logits.data ? (uint64_t)r->logits.dim[1] : 0;
    *vocabulary = r->logits.data ? (uint64_t)r->logits.dim[2] : 0;
    return r->logits.data;
}

uint64_t
xm_token_runner_past(const struct xm_token_runner *r)
{
    return r->infer->ops->past(r->infer);
}

void
xm_token_runner_truncate(struct xm_token_runner *r, uint64_t past)
{
    const struct xm_infer_ops *ops = r->infer->ops;
    r->logits.data = NULL;
    if (past == 0)
        ops->reset(r->infer);
    else if (past < xm_token_runner_past(r) && ops->truncate)
        ops->truncate(r->infer, past);
    else if (past < xm_token_runner_past(r))
        ops->reset(r->infer);
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
