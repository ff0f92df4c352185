/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/token_feeder.h"

struct feed_sequence {
    struct xm_token_feeder base; /* first */
    struct xm_batch *batch;
    struct xm_sequence *sequence;
};

static const struct feed_sequence *
self(const struct xm_token_feeder *f)
{
    return (const struct feed_sequence *)f;
}

static enum xm_status
feed(struct xm_token_feeder *f, const int32_t *ids, uint64_t n, uint64_t wanted,
     struct xm_token_rows *out, struct xm_error *err)
{
    struct xm_batch *batch = self(f)->batch;
    const struct xm_batch_row row = {self(f)->sequence, ids, n, wanted};
    XM_TRY(batch->ops->run(batch, &row, 1, err));
    out->logits = batch->ops->logits(batch, 0, &out->rows, &out->vocabulary);
    return XM_OK;
}

static uint64_t
past(const struct xm_token_feeder *f)
{
    const struct xm_sequence *s = self(f)->sequence;
    return s->ops->past(s);
}

static void
truncate_to(struct xm_token_feeder *f, uint64_t past)
{
    struct xm_sequence *s = self(f)->sequence;
    s->ops->truncate(s, past);
}

static enum xm_status
match(struct xm_token_feeder *f, const int32_t *ids, uint64_t n, struct xm_error *err)
{
    struct xm_sequence *s = self(f)->sequence;
    return s->ops->match(s, ids, n, err);
}

static struct xm_sequence *
sequence(const struct xm_token_feeder *f)
{
    return self(f)->sequence;
}

static void
prepare(struct xm_token_feeder *f, const struct xm_token_choice *how)
{
    struct xm_batch *batch = self(f)->batch;
    if (batch->ops->prepare)
        batch->ops->prepare(batch, how);
}

static enum xm_status
choose(struct xm_token_feeder *f, struct xm_device_choice *c, struct xm_error *err)
{
    struct xm_batch *batch = self(f)->batch;
    return batch->ops->choose
               ? batch->ops->choose(batch, self(f)->sequence, c, err)
               : xm_fail(err, XM_UNSUPPORTED, "the device chooses no tokens");
}

static void
stop(struct xm_token_feeder *f)
{
    struct xm_batch *batch = self(f)->batch;
    if (batch->ops->stop)
        batch->ops->stop(batch);
}

static struct xm_infer *
control(const struct xm_token_feeder *f)
{
    return self(f)->batch->control;
}

static void
destroy(struct xm_token_feeder *f)
{
    struct feed_sequence *s = (struct feed_sequence *)f;
    xm_compiled_destroy_batch(s->batch); /* first: it may run a token of the sequence */
    xm_compiled_destroy_sequence(s->sequence);
    xm_free(s);
}

static const struct xm_token_feeder_ops ops = {.feed = feed,
                                               .past = past,
                                               .truncate = truncate_to,
                                               .match = match,
                                               .sequence = sequence,
                                               .prepare = prepare,
                                               .choose = choose,
                                               .stop = stop,
                                               .control = control,
                                               .destroy = destroy};

enum xm_status
xm_feed_sequence_create(struct xm_compiled *c, struct xm_token_feeder **out,
                        struct xm_error *err)
{
    struct feed_sequence *s = xm_calloc(1, sizeof(*s));
    if (!s)
        return xm_no_memory(err, "a run of tokens");
    s->base.ops = &ops;
    enum xm_status status = xm_compiled_create_batch(c, &s->batch, err);
    if (status == XM_OK)
        status = xm_compiled_create_sequence(c, &s->sequence, err);
    if (status == XM_OK)
        *out = &s->base;
    else
        destroy(&s->base);
    return status;
}
