/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/generate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/request.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"

enum { IDS, MASK, POSITIONS, BEAMS, N_FEEDS };
static const char *const feed_names[N_FEEDS] = {"input_ids", "attention_mask",
                                                "position_ids", "beam_idx"};

struct xm_generator {
    struct xm_compiled *compiled;
    struct xm_infer *infer;
    struct xm_sampler *sampler;
    struct xm_sampling sampling;
    uint32_t input[N_FEEDS]; /* UINT32_MAX: the model has no such input            */
    struct xm_host_tensor feed[N_FEEDS]; /* bytes owned */
    uint64_t room[N_FEEDS];       /* bytes allocated                                   */
    struct xm_host_tensor logits; /* of the last feed; bytes of the request             */
    int64_t fed; /* tokens of the last feed                             */
};

static enum xm_status
find_inputs(struct xm_generator *g, struct xm_error *err)
{
    const struct xm_compiled *c = g->compiled;
    for (int i = 0; i < N_FEEDS; i++)
        g->input[i] = xm_port_find(c->inputs, c->n_inputs, feed_names[i]);
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        bool known = false;
        for (int f = 0; f < N_FEEDS; f++)
            known |= g->input[f] == i;
        if (!known)
            return xm_fail(err, XM_UNSUPPORTED,
                           "input '%s' is not one that text generation feeds (input_ids, "
                           "attention_mask, position_ids, beam_idx)",
                           c->inputs[i].name);
    }
    if (g->input[IDS] == UINT32_MAX || c->n_outputs == 0)
        return xm_fail(
            err, XM_UNSUPPORTED,
            "a model for text generation has an input 'input_ids' and a result");
    return XM_OK;
}

enum xm_status
xm_generator_create(struct xm_compiled *compiled, const struct xm_sampling *sampling,
                    struct xm_generator **out, struct xm_error *err)
{
    struct xm_generator *g = xm_calloc(1, sizeof(*g));
    if (!g)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a generator");
    g->compiled = compiled;
    xm_compiled_ref(compiled);
    g->sampling = *sampling;
    enum xm_status s = find_inputs(g, err);
    if (s == XM_OK)
        s = xm_compiled_create_request(compiled, &g->infer, err);
    if (s != XM_OK) {
        xm_generator_destroy(g);
        return s;
    }
    *out = g;
    return XM_OK;
}

void
xm_generator_destroy(struct xm_generator *g)
{
    if (!g)
        return;
    xm_infer_destroy(g->infer);
    xm_sampler_free(g->sampler);
    for (int i = 0; i < N_FEEDS; i++)
        xm_free(g->feed[i].data);
    xm_compiled_unref(g->compiled);
    xm_free(g);
}

/* ---- feeding ---- */

static enum xm_status
shape_feed(struct xm_generator *g, int i, uint32_t rank, int64_t n, struct xm_error *err)
{
    struct xm_host_tensor *t = &g->feed[i];
    t->element = g->compiled->inputs[g->input[i]].type.element;
    t->rank = rank;
    t->dim[0] = rank == 2 ? 1 : n;
    t->dim[1] = n;
    if (!xm_element_is_int(t->element) ||
        !xm_element_bytes(t->element, (uint64_t)n, &t->bytes))
        return xm_fail(err, XM_UNSUPPORTED, "input '%s' is %s, expected integers",
                       feed_names[i], xm_element_text(t->element));
    if (t->bytes > g->room[i]) {
        void *data = xm_realloc(t->data, 2 * t->bytes);
        if (!data)
            return xm_fail(err, XM_NO_MEMORY, "out of memory for input '%s'",
                           feed_names[i]);
        t->data = data;
        g->room[i] = 2 * t->bytes;
    }
    return XM_OK;
}

/* Element k of feed i: the id, a one, the position, sequence 0. */
static int64_t
feed_value(int i, const int32_t *ids, uint64_t past, uint64_t k)
{
    switch (i) {
    case IDS:
        return ids[k];
    case MASK:
        return 1;
    case POSITIONS:
        return (int64_t)(past + k);
    default:
        return 0;
    }
}

static enum xm_status
set_feed(struct xm_generator *g, int i, const int32_t *ids, uint64_t n, uint64_t past,
         struct xm_error *err)
{
    uint64_t count = i == MASK ? past + n : i == BEAMS ? 1 : n;
    if (g->input[i] == UINT32_MAX)
        return XM_OK;
    XM_TRY(shape_feed(g, i, i == BEAMS ? 1 : 2, (int64_t)count, err));
    for (uint64_t k = 0; k < count; k++)
        xm_store_int(g->feed[i].element, g->feed[i].data, k, feed_value(i, ids, past, k));
    return g->infer->ops->set_input(g->infer, g->input[i], &g->feed[i], err);
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

/* A dry run computes nothing that could be looked at. */
static enum xm_status
check_logits(const struct xm_generator *g, const struct xm_host_tensor *t, uint64_t past,
             struct xm_error *err)
{
    const struct xm_program *p = g->compiled->program;
    const bool is_f16 = p && p->config.inference_precision == XM_F16;
    const uint64_t first = past + (uint64_t)(g->fed - t->dim[1]);
    for (int64_t r = 0; r < t->dim[1] && !xm_dry_run(); r++) {
        if (!is_sound((const float *)t->data + r * t->dim[2], t->dim[2]))
            return xm_fail(err, XM_NOT_FINITE,
                           "the logits of position %" PRIu64 " are not finite: %s",
                           first + (uint64_t)r,
                           is_f16 ? "f16 activations have overflowed; "
                                    "INFERENCE_PRECISION_HINT=f32 has room for them"
                                  : "the model's numbers overflow f32");
    }
    return XM_OK;
}

/* Penalties see the tokens that the states hold, no others: those that were taken back, by the
 * caller or by a run that failed, have not been said. */
static void
follow_states(struct xm_generator *g)
{
    if (g->sampler)
        xm_sampler_rewind(g->sampler, (size_t)g->infer->ops->past(g->infer));
}

static enum xm_status
accept(struct xm_generator *g, const int32_t *ids, uint64_t n, size_t vocabulary,
       struct xm_error *err)
{
    if (!g->sampler)
        XM_TRY(xm_sampler_create(&g->sampling, vocabulary, &g->sampler, err));
    return xm_sampler_accept(g->sampler, ids, (size_t)n, err);
}

enum xm_status
xm_generator_feed(struct xm_generator *g, const int32_t *ids, uint64_t n,
                  struct xm_error *err)
{
    const struct xm_infer_ops *ops = g->infer->ops;
    uint64_t past = ops->past(g->infer);
    g->logits.data = NULL; /* the request's memory, which this run changes */
    if (n == 0)
        return xm_fail(err, XM_INVALID, "there are no tokens to feed");
    for (int i = 0; i < N_FEEDS; i++)
        XM_TRY(set_feed(g, i, ids, n, past, err));
    enum xm_status s = ops->infer(g->infer, err);
    if (s != XM_OK) {
        follow_states(g);
        return s;
    }
    struct xm_host_tensor t;
    XM_TRY(ops->output(g->infer, 0, &t, err));
    if (t.element != XM_F32 || t.rank != 3 || t.dim[0] != 1)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the first result is %s of rank %u, expected f32 logits "
                       "[1,tokens,vocabulary]",
                       xm_element_text(t.element), t.rank);
    g->fed = (int64_t)n;
    XM_TRY(accept(g, ids, n, (size_t)t.dim[2], err));
    XM_TRY(check_logits(g, &t, past, err));
    g->logits = t;
    return XM_OK;
}

const float *
xm_generator_logits(const struct xm_generator *g, uint64_t *rows, uint64_t *vocabulary)
{
    *rows = g->logits.data ? (uint64_t)g->logits.dim[1] : 0;
    *vocabulary = g->logits.data ? (uint64_t)g->logits.dim[2] : 0;
    return g->logits.data;
}

enum xm_status
xm_generator_sample(struct xm_generator *g, int32_t *id, struct xm_error *err)
{
    uint64_t rows, vocabulary;
    const float *logits = xm_generator_logits(g, &rows, &vocabulary);
    if (rows == 0)
        return xm_fail(err, XM_INVALID, "nothing has been fed yet");
    *id = 0;
    if (xm_dry_run())
        return XM_OK;
    return xm_sampler_next(g->sampler, logits + (rows - 1) * vocabulary, id, err);
}

void
xm_generator_reset(struct xm_generator *g)
{
    g->infer->ops->reset(g->infer);
    g->logits.data = NULL;
    follow_states(g);
}

void
xm_generator_rewind(struct xm_generator *g, uint64_t past)
{
    const struct xm_infer_ops *ops = g->infer->ops;
    if (past >= ops->past(g->infer))
        return;
    if (ops->truncate)
        ops->truncate(g->infer, past);
    else
        ops->reset(g->infer);
    g->logits.data = NULL;
    follow_states(g);
}

struct xm_infer *
xm_generator_request(struct xm_generator *g)
{
    return g->infer;
}

/* ---- a whole generation ---- */

/* A clock that stands still while kernels are built. */
struct stopwatch {
    const struct xm_engine *engine; /* NULL: the reference's, which builds none */
    double start, built;
};

static double
built_s(const struct xm_engine *engine)
{
    struct xm_build_stats stats = {0};
    if (engine)
        xm_engine_build_stats(engine, &stats);
    return stats.seconds;
}

static void
start_watch(struct stopwatch *w, const struct xm_generator *g)
{
    const struct xm_program *p = g->compiled->program;
    w->engine = p ? p->engine : NULL;
    w->built = built_s(w->engine);
    w->start = xm_now();
}

/* Seconds since the start; *built has those that building took besides. */
static double
read_watch(const struct stopwatch *w, double *built)
{
    *built = built_s(w->engine) - w->built;
    const double s = xm_now() - w->start - *built;
    return s > 0.0 ? s : 0.0;
}

static bool
is_stop(const struct xm_generation *run, int32_t id)
{
    bool found = false;
    for (uint32_t i = 0; i < run->n_stop && !xm_dry_run(); i++)
        found |= run->stop_ids[i] == id;
    return found;
}

/* Work done so far; none by a request of the reference. */
static struct xm_request_stats
stats_of(const struct xm_generator *g)
{
    struct xm_request_stats stats = {0};
    if (g->infer->request)
        xm_request_stats(g->infer->request, &stats);
    return stats;
}

enum xm_status
xm_generator_run(struct xm_generator *g, const struct xm_generation *run,
                 struct xm_token_list *out, struct xm_generation_times *times,
                 struct xm_error *err)
{
    int32_t id = 0;
    double prompt_built, decode_built;
    struct stopwatch watch;
    start_watch(&watch, g);
    struct xm_request_stats before = stats_of(g), prompt;
    *times = (struct xm_generation_times){0};
    XM_TRY(xm_generator_feed(g, run->prompt, run->n_prompt, err));
    times->prompt_s = read_watch(&watch, &prompt_built);
    times->build_s = prompt_built;
    prompt = stats_of(g);
    times->prompt_multiply_adds = prompt.multiply_adds - before.multiply_adds;
    times->prompt_tokens = run->n_prompt;
    start_watch(&watch, g);
    for (uint64_t i = 0; i < run->max_tokens; i++) {
        if (i > 0) {
            XM_TRY(xm_generator_feed(g, &id, 1, err));
            times->decode_tokens++;
            times->decode_s = read_watch(&watch, &decode_built);
            times->build_s = prompt_built + decode_built;
            times->decode_weight_bytes = stats_of(g).weight_bytes - prompt.weight_bytes;
        }
        XM_TRY(xm_generator_sample(g, &id, err));
        if (is_stop(run, id))
            break;
        if (!xm_token_list_add(out, id))
            return xm_fail(err, XM_NO_MEMORY, "out of memory for the tokens");
        if (run->on_token && !run->on_token(id, run->ctx))
            break;
    }
    return XM_OK;
}
