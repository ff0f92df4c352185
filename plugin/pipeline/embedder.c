/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/embedder.h"

#include <inttypes.h>
#include <math.h>

#include "plugin/pipeline/feed_request.h"
#include "plugin/pipeline/token_runner.h"
#include "transformations/passes/gather_hidden_states.h"

/* Bounds of texts that run together; a longer text runs alone. */
enum { MOST_TEXTS = 32, MOST_TOKENS = 512 };

struct xm_embedder {
    struct xm_compiled *compiled;
    enum xm_pooling pooling;
    uint64_t width;
    double *sums;                    /* [width] */
    struct xm_batch *batch;          /* NULL: `request` runs the texts */
    struct xm_feed_request *request; /* NULL: `batch` runs the texts */
    struct xm_infer *infer;          /* of either; not owned */
};

/* ---- the model ----------------------------------------------------------------------- */

enum xm_status
xm_embedder_read_graph(const struct xm_package *p, struct xm_graph **out,
                       uint64_t *vocabulary, struct xm_error *err)
{
    XM_TRY(xm_package_read_graph(p, NULL, out, err));
    *vocabulary = xm_graph_vocabulary(*out);
    if (xm_pass_gather_hidden_states(*out))
        return XM_OK;
    const enum xm_status s = xm_fail(err, (*out)->err.status, "%s", (*out)->err.text);
    xm_graph_destroy(*out);
    *out = NULL;
    return s;
}

/* Creates the batch, or a request for a model that does not support sequences, such as one without
 * a KV cache. */
static enum xm_status
begin(struct xm_embedder *e, struct xm_error *err)
{
    struct xm_error why = {0};
    const enum xm_status s = xm_compiled_create_batch(e->compiled, &e->batch, &why);
    if (s == XM_OK) {
        e->infer = e->batch->control;
        return XM_OK;
    }
    if (s != XM_UNSUPPORTED)
        return xm_fail(err, s, "%s", why.text);
    e->batch = NULL;
    XM_TRY(xm_feed_request_create(e->compiled, &e->request, err));
    e->infer = xm_feed_request_infer(e->request);
    return XM_OK;
}

static enum xm_status
make(struct xm_embedder *e, struct xm_error *err)
{
    /* the last dimension of the hidden states */
    e->width = xm_compiled_vocabulary(e->compiled);
    if (e->width == UINT64_MAX)
        return xm_fail(err, XM_UNSUPPORTED, "the hidden states have no fixed width");
    e->sums = xm_calloc((size_t)e->width, sizeof(*e->sums));
    return e->sums ? begin(e, err) : xm_no_memory(err, "an embedding");
}

enum xm_status
xm_embedder_create(struct xm_compiled *compiled, enum xm_pooling pooling,
                   struct xm_embedder **out, struct xm_error *err)
{
    struct xm_embedder *e = xm_calloc(1, sizeof(*e));
    *out = NULL;
    if (!e)
        return xm_no_memory(err, "a model for embeddings");
    e->compiled = compiled;
    e->pooling = pooling;
    xm_compiled_ref(compiled);
    const enum xm_status s = make(e, err);
    if (s == XM_OK)
        *out = e;
    else
        xm_embedder_destroy(e);
    return s;
}

void
xm_embedder_destroy(struct xm_embedder *e)
{
    if (!e)
        return;
    xm_compiled_destroy_batch(e->batch);
    xm_feed_request_destroy(e->request);
    xm_compiled_unref(e->compiled);
    xm_free(e->sums);
    xm_free(e);
}

uint64_t
xm_embedder_width(const struct xm_embedder *e)
{
    return e->width;
}

/* ---- from hidden states to an embedding ---------------------------------------------------- */

/* Pools rows[n][width]; for the mean these must be all rows of the text. */
static enum xm_status
pool(struct xm_embedder *e, const struct xm_token_rows *t, uint64_t dimensions,
     float *out, struct xm_error *err)
{
    const uint64_t first = e->pooling == XM_POOLING_MEAN ? 0 : t->rows - 1;
    double squares = 0.0;
    for (uint64_t i = 0; i < dimensions; i++)
        e->sums[i] = 0.0;
    for (uint64_t row = first; row < t->rows; row++)
        for (uint64_t i = 0; i < dimensions; i++)
            e->sums[i] += (double)t->logits[row * t->vocabulary + i];
    for (uint64_t i = 0; i < dimensions; i++)
        squares += e->sums[i] * e->sums[i];
    if (!(squares < INFINITY))
        return xm_fail(err, XM_NOT_FINITE,
                       "the hidden states of a text are not finite: activations "
                       "overflow, or weights are not finite; f32 activations may help");
    for (uint64_t i = 0; i < dimensions; i++)
        out[i] = squares > 0.0 ? (float)(e->sums[i] / sqrt(squares)) : 0.0f;
    return XM_OK;
}

static uint64_t
wanted_of(const struct xm_embedder *e, const struct xm_token_list *text)
{
    return e->pooling == XM_POOLING_MEAN ? text->n : 1;
}

static enum xm_status
check_rows(const struct xm_embedder *e, const struct xm_token_rows *t, uint64_t wanted,
           struct xm_error *err)
{
    return t->logits && t->rows == wanted && t->vocabulary == e->width
               ? XM_OK
               : xm_fail(err, XM_DEVICE,
                         "the device returned %" PRIu64 " hidden states of width %" PRIu64
                         ", expected %" PRIu64 " of width %" PRIu64,
                         t->rows, t->vocabulary, wanted, e->width);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static enum xm_status
run_alone(struct xm_embedder *e, const struct xm_token_list *text, uint64_t dimensions,
          float *out, struct xm_error *err)
{
    struct xm_token_rows t = {0};
    const uint64_t wanted = wanted_of(e, text);
    e->infer->ops->reset(e->infer);
    XM_TRY(xm_feed_request(e->request, text->ids, text->n, wanted, &t, err));
    XM_TRY(check_rows(e, &t, wanted, err));
    return pool(e, &t, dimensions, out, err);
}

static enum xm_status
run_rows(struct xm_embedder *e, const struct xm_batch_row *rows, uint32_t n,
         uint64_t dimensions, float *out, struct xm_error *err)
{
    XM_TRY(e->batch->ops->run(e->batch, rows, n, err));
    for (uint32_t i = 0; i < n; i++) {
        struct xm_token_rows t;
        t.logits = e->batch->ops->logits(e->batch, i, &t.rows, &t.vocabulary);
        XM_TRY(check_rows(e, &t, rows[i].wanted, err));
        XM_TRY(pool(e, &t, dimensions, out + i * dimensions, err));
    }
    return XM_OK;
}

/* Runs each text as a sequence, which is destroyed after the run. */
static enum xm_status
run_together(struct xm_embedder *e, const struct xm_token_list *texts, uint32_t n,
             uint64_t dimensions, float *out, struct xm_error *err)
{
    struct xm_batch_row rows[MOST_TEXTS] = {{0}};
    enum xm_status s = XM_OK;
    uint32_t made = 0;
    for (; made < n && s == XM_OK; made++) {
        rows[made] = (struct xm_batch_row){.ids = texts[made].ids,
                                           .n = texts[made].n,
                                           .wanted = wanted_of(e, &texts[made])};
        s = xm_compiled_create_sequence(e->compiled, &rows[made].sequence, err);
    }
    if (s == XM_OK)
        s = run_rows(e, rows, n, dimensions, out, err);
    for (uint32_t i = 0; i < made; i++)
        xm_compiled_destroy_sequence(rows[i].sequence);
    return s;
}

/* Returns how many of the first texts run together, at most `most`. */
static uint32_t
count_together(const struct xm_embedder *e, const struct xm_token_list *texts, size_t n,
               uint32_t most)
{
    uint64_t tokens = texts[0].n;
    uint32_t k = 1;
    while (e->batch && k < n && k < most && tokens + texts[k].n <= MOST_TOKENS)
        tokens += texts[k++].n;
    return k;
}

enum xm_status
xm_embedder_run(struct xm_embedder *e, const struct xm_token_list *texts, size_t n,
                uint64_t dimensions, float *out, struct xm_error *err)
{
    uint32_t most = MOST_TEXTS;
    for (size_t i = 0; i < n;) {
        const uint32_t k = count_together(e, texts + i, n - i, most);
        float *to = out + i * dimensions;
        struct xm_error why = {0};
        const enum xm_status s = e->batch
                                     ? run_together(e, texts + i, k, dimensions, to, &why)
                                     : run_alone(e, texts + i, dimensions, to, &why);
        if (s != XM_OK && (s != XM_NO_MEMORY || k == 1))
            return xm_fail(err, s, "%s", why.text);
        i += s == XM_OK ? k : 0;
        /* after a failure, tries half as many, because the cache had no room */
        most = s == XM_OK ? most : k / 2;
    }
    return XM_OK;
}

void
xm_embedder_cancel(struct xm_embedder *e)
{
    e->infer->ops->cancel(e->infer);
}

void
xm_embedder_resume(struct xm_embedder *e)
{
    e->infer->ops->resume(e->infer);
}

struct xm_infer *
xm_embedder_request(const struct xm_embedder *e)
{
    return e->infer;
}
