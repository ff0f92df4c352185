/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/feed_request.h"

#include "plugin/feeds.h"

struct xm_feed_request {
    struct xm_infer *infer;
    /* index of each feed's input; UINT32_MAX: the model has no such input */
    uint32_t input[XM_N_FEEDS];
    struct xm_host_tensor feed[XM_N_FEEDS]; /* bytes owned */
    uint64_t room[XM_N_FEEDS];              /* bytes allocated for each feed */
};

/* The tokens of one run, with the number of wanted logits and of positions before them. */
struct stretch {
    const int32_t *ids;
    uint64_t n, wanted, past;
};

static uint32_t
rank_of(int i)
{
    return i == XM_FEED_BEAMS || i == XM_FEED_SAMPLES ? 1 : 2;
}

static enum xm_status
shape_feed(struct xm_feed_request *r, int i, int64_t n, struct xm_error *err)
{
    struct xm_host_tensor *t = &r->feed[i];
    t->element = r->infer->compiled->ports.inputs[r->input[i]].type.element;
    t->rank = rank_of(i);
    t->dim[0] = t->rank == 2 ? 1 : n;
    t->dim[1] = n;
    if (!xm_element_is_int(t->element) ||
        !xm_element_bytes(t->element, (uint64_t)n, &t->bytes))
        return xm_fail(err, XM_UNSUPPORTED,
                       "input '%s' has element type %s, expected integers",
                       xm_feed_names[i], xm_element_text(t->element));
    if (t->bytes > r->room[i]) {
        void *data = xm_realloc(t->data, 2 * t->bytes);
        if (!data)
            return xm_no_memory(err, "input '%s'", xm_feed_names[i]);
        t->data = data;
        r->room[i] = 2 * t->bytes;
    }
    return XM_OK;
}

static uint64_t
count_of(int i, const struct stretch *s)
{
    switch (i) {
    case XM_FEED_MASK:
        return s->past + s->n;
    case XM_FEED_BEAMS:
        return 1;
    case XM_FEED_SAMPLES:
        return s->wanted;
    default:
        return s->n;
    }
}

/* Returns element k of feed i: the id, 1 in the mask, the position, sequence 0, or the index of a
 * wanted row. */
static int64_t
value_of(int i, const struct stretch *s, uint64_t k)
{
    switch (i) {
    case XM_FEED_IDS:
        return s->ids[k];
    case XM_FEED_MASK:
        return 1;
    case XM_FEED_POSITIONS:
        return (int64_t)(s->past + k);
    case XM_FEED_SAMPLES:
        return (int64_t)(s->n - s->wanted + k);
    default:
        return 0;
    }
}

static enum xm_status
set_feed(struct xm_feed_request *r, int i, const struct stretch *s, struct xm_error *err)
{
    const uint64_t count = count_of(i, s);
    if (r->input[i] == UINT32_MAX)
        return XM_OK;
    XM_TRY(shape_feed(r, i, (int64_t)count, err));
    for (uint64_t k = 0; k < count; k++)
        xm_store_int(r->feed[i].element, r->feed[i].data, k, value_of(i, s, k));
    return r->infer->ops->set_input(r->infer, r->input[i], &r->feed[i], err);
}

enum xm_status
xm_feed_request(struct xm_feed_request *r, const int32_t *ids, uint64_t n,
                uint64_t wanted, struct xm_token_rows *out, struct xm_error *err)
{
    const struct xm_infer_ops *ops = r->infer->ops;
    const struct stretch s = {ids, n, wanted, ops->past(r->infer)};
    struct xm_host_tensor t;
    for (int i = 0; i < XM_N_FEEDS; i++)
        XM_TRY(set_feed(r, i, &s, err));
    XM_TRY(ops->infer(r->infer, err));
    XM_TRY(ops->output(r->infer, 0, &t, err));
    if (t.element != XM_F32 || t.rank != 3 || t.dim[0] != 1)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the first result has element type %s and rank %u, expected f32 "
                       "logits [1,tokens,vocabulary]",
                       xm_element_text(t.element), t.rank);
    *out = (struct xm_token_rows){t.data, (uint64_t)t.dim[1], (uint64_t)t.dim[2]};
    return XM_OK;
}

struct xm_infer *
xm_feed_request_infer(const struct xm_feed_request *r)
{
    return r->infer;
}

void
xm_feed_request_destroy(struct xm_feed_request *r)
{
    if (!r)
        return;
    xm_infer_destroy(r->infer);
    for (int i = 0; i < XM_N_FEEDS; i++)
        xm_free(r->feed[i].data);
    xm_free(r);
}

enum xm_status
xm_feed_request_create(struct xm_compiled *c, struct xm_feed_request **out,
                       struct xm_error *err)
{
    struct xm_feed_request *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_no_memory(err, "a run of tokens");
    enum xm_status s = xm_feeds_find(c->ports.inputs, c->ports.n_inputs, r->input, err);
    if (s == XM_OK && c->ports.n_outputs == 0)
        s = xm_fail(err, XM_UNSUPPORTED, "text generation needs a model with a result");
    if (s == XM_OK)
        s = xm_compiled_create_request(c, &r->infer, err);
    if (s == XM_OK)
        *out = r;
    else
        xm_feed_request_destroy(r);
    return s;
}
