/* SPDX-License-Identifier: Apache-2.0
 *
 * A sampler keeps little: which tokens it has accepted, and how often. Penalties and what bars
 * tokens change a copy of the logits in the scratch memory; without either there is no copy.
 */
#include "plugin/text/sampler.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "plugin/text/candidates.h"
#include "plugin/text/token_counts.h"
#include "plugin/text/token_list.h"
#include "plugin/text/token_weight.h"
#include "runtime/util/memory.h"

struct xm_sampler_scratch {
    size_t vocab_size;
    float *logits; /* owned; [vocab_size], with penalties */
    struct xm_candidates *candidates;
};

struct xm_sampler {
    struct xm_sampling sampling;
    size_t vocab_size;
    uint64_t n_drawn; /* random numbers so far */

    /* With penalties only: */
    /* of the tokens in the window */
    struct xm_token_counts counts;
    /* owned; the window, as a ring when it has last_n tokens */
    int32_t *accepted;
    size_t n_accepted, capacity;
    size_t oldest; /* in the ring */

    struct xm_token_list text;   /* accepted, with no_repeat_ngram              */
    struct xm_token_list barred; /* from the next choice                        */
    const uint64_t *allowed;     /* in it, a bit each; NULL: all                */
    size_t n_allowed;            /* words                                       */
};

static bool
has_penalties(const struct xm_sampling *s)
{
    return (s->repetition_penalty != 0.0f && s->repetition_penalty != 1.0f) ||
           s->presence_penalty != 0.0f || s->frequency_penalty != 0.0f;
}

/* "name is x, expected low..high"; NaN is outside of everything. */
static enum xm_status
check_range(const char *name, float x, float low, float high, struct xm_error *err)
{
    if (x >= low && x <= high)
        return XM_OK;
    if (high == FLT_MAX)
        return xm_fail(err, XM_INVALID, "%s is %g, expected %g or more", name, (double)x,
                       (double)low);
    return xm_fail(err, XM_INVALID, "%s is %g, expected %g..%g", name, (double)x,
                   (double)low, (double)high);
}

static enum xm_status
check_sampling(const struct xm_sampling *s, struct xm_error *err)
{
    XM_TRY(check_range("temperature", s->temperature, 0.0f, FLT_MAX, err));
    XM_TRY(check_range("top_p", s->top_p, 0.0f, 1.0f, err));
    XM_TRY(check_range("min_p", s->min_p, 0.0f, 1.0f, err));
    XM_TRY(check_range("repetition_penalty", s->repetition_penalty, 0.0f, FLT_MAX, err));
    if (s->only_new && s->last_n > 0)
        return xm_fail(
            err, XM_INVALID,
            "penalties of new tokens see all of them: last_n is %d, expected 0",
            s->last_n);
    XM_TRY(check_range("presence_penalty", s->presence_penalty, -1e6f, 1e6f, err));
    return check_range("frequency_penalty", s->frequency_penalty, -1e6f, 1e6f, err);
}

/* ---- life ------------------------------------------------------------------------------- */

struct xm_sampler_scratch *
xm_sampler_scratch_create(size_t vocab_size)
{
    struct xm_sampler_scratch *s = xm_calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->vocab_size = vocab_size;
    s->logits = xm_calloc(vocab_size, sizeof(*s->logits));
    s->candidates = xm_candidates_create(vocab_size);
    if (s->logits && s->candidates)
        return s;
    xm_sampler_scratch_free(s);
    return NULL;
}

void
xm_sampler_scratch_free(struct xm_sampler_scratch *scratch)
{
    if (!scratch)
        return;
    xm_free(scratch->logits);
    xm_candidates_free(scratch->candidates);
    xm_free(scratch);
}

enum xm_status
xm_sampler_create(const struct xm_sampling *sampling, size_t vocab_size,
                  struct xm_sampler **out, struct xm_error *err)
{
    *out = NULL;
    XM_TRY(check_sampling(sampling, err));
    if (vocab_size == 0 || vocab_size > INT32_MAX)
        return xm_fail(err, XM_INVALID, "a vocabulary of %zu tokens", vocab_size);
    struct xm_sampler *s = xm_calloc(1, sizeof(*s));
    if (!s)
        return xm_no_memory(err, "a sampler");
    s->sampling = *sampling;
    s->vocab_size = vocab_size;
    *out = s;
    return XM_OK;
}

void
xm_sampler_free(struct xm_sampler *sampler)
{
    if (!sampler)
        return;
    xm_token_counts_free(&sampler->counts);
    xm_free(sampler->accepted);
    xm_token_list_free(&sampler->text);
    xm_token_list_free(&sampler->barred);
    xm_free(sampler);
}

/* ---- penalties -------------------------------------------------------------------------- */

static enum xm_status
accept(struct xm_sampler *s, int32_t id, struct xm_error *err)
{
    const size_t window = s->sampling.last_n > 0 ? (size_t)s->sampling.last_n : SIZE_MAX;
    if (window < SIZE_MAX && s->n_accepted < window) {
        int32_t *grown =
            xm_grow(s->accepted, &s->capacity, s->n_accepted + 1, sizeof(*grown));
        if (!grown)
            return xm_no_memory(err, "%zu accepted tokens", s->n_accepted + 1);
        s->accepted = grown;
    }
    if (!xm_token_counts_add(&s->counts, id))
        return xm_no_memory(err, "counts of accepted tokens");
    if (window == SIZE_MAX)
        return XM_OK; /* nothing ever leaves the window: counts say it all */
    if (s->n_accepted < window) {
        s->accepted[s->n_accepted++] = id;
        return XM_OK;
    }
    xm_token_counts_remove(&s->counts, s->accepted[s->oldest]);
    s->accepted[s->oldest] = id;
    s->oldest = (s->oldest + 1) % window;
    return XM_OK;
}

enum xm_status
xm_sampler_accept(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                  struct xm_error *err)
{
    if (sampler->sampling.no_repeat_ngram && !xm_token_list_add_n(&sampler->text, ids, n))
        return xm_no_memory(err, "%zu accepted tokens", n);
    for (size_t i = 0; has_penalties(&sampler->sampling) && i < n; i++)
        if (ids[i] >= 0 && (size_t)ids[i] < sampler->vocab_size)
            XM_TRY(accept(sampler, ids[i], err));
    return XM_OK;
}

enum xm_status
xm_sampler_begin(struct xm_sampler *sampler, const int32_t *prompt, size_t n,
                 struct xm_error *err)
{
    xm_sampler_forget(sampler);
    XM_TRY(xm_sampler_accept(sampler, prompt, n, err));
    if (sampler->sampling.only_new)
        xm_token_counts_mark(&sampler->counts);
    return XM_OK;
}

void
xm_sampler_forget(struct xm_sampler *sampler)
{
    sampler->n_accepted = sampler->oldest = 0;
    xm_token_list_clear(&sampler->text);
    xm_token_counts_clear(&sampler->counts);
}

/* The penalties as numbers that change nothing where they are off. */
static struct xm_token_choice
penalties_of(const struct xm_sampling *s)
{
    const float r = s->repetition_penalty != 0.0f ? s->repetition_penalty : 1.0f;
    return (struct xm_token_choice){.repetition = r,
                                    .inverse_repetition = 1.0f / r,
                                    .frequency = s->frequency_penalty,
                                    .presence = s->presence_penalty,
                                    .window = s->last_n > 0 ? (uint32_t)s->last_n : 0,
                                    .adjusts = has_penalties(s)};
}

static void
penalise_all(const struct xm_sampler *s, float *logits)
{
    const struct xm_token_choice p = penalties_of(&s->sampling);
    for (size_t i = 0; i < s->counts.n; i++) {
        const struct xm_token_count *e = &s->counts.entries[i];
        logits[e->id] = penalised(logits[e->id], e->count - e->before, p.repetition,
                                  p.inverse_repetition, p.frequency, p.presence);
    }
}

/* ---- tokens that may not come ------------------------------------------------------------ */

void
xm_bar_tokens(const int32_t *ids, size_t n, float *logits, size_t vocab_size)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= 0 && (size_t)ids[i] < vocab_size)
            logits[ids[i]] = -INFINITY;
}

void
xm_bar_ngrams(const int32_t *text, size_t length, uint32_t n, float *logits,
              size_t vocab_size)
{
    if (n == 0 || length < n)
        return;
    const int32_t *last = text + length - (n - 1);
    for (size_t i = 0; i + n <= length; i++)
        if (memcmp(text + i, last, (n - 1) * sizeof(*last)) == 0)
            xm_bar_tokens(text + i + n - 1, 1, logits, vocab_size);
}

enum xm_status
xm_sampler_bar(struct xm_sampler *sampler, const int32_t *ids, size_t n,
               struct xm_error *err)
{
    return xm_token_list_add_n(&sampler->barred, ids, n)
               ? XM_OK
               : xm_fail(err, XM_NO_MEMORY, "no memory to bar %zu tokens", n);
}

void
xm_sampler_allow(struct xm_sampler *sampler, const uint64_t *bits, size_t n)
{
    sampler->allowed = bits;
    sampler->n_allowed = n;
}

static void
bar_others(const uint64_t *allowed, size_t n, float *logits, size_t vocab_size)
{
    for (size_t word = 0; word * 64 < vocab_size; word++) {
        const uint64_t bits = word < n ? allowed[word] : 0;
        const size_t end = vocab_size < word * 64 + 64 ? vocab_size : word * 64 + 64;
        for (size_t i = word * 64; bits != UINT64_MAX && i < end; i++)
            if (!(bits >> i % 64 & 1))
                logits[i] = -INFINITY;
    }
}

/* ---- choice ------------------------------------------------------------------------------- */

/* The logits to choose from: the caller's own when nothing changes any, else `changed`. */
static const float *
change(struct xm_sampler *s, const float *logits, float *changed)
{
    if (s->counts.n == 0 && !s->sampling.no_repeat_ngram && s->barred.n == 0 &&
        !s->allowed)
        return logits;
    memcpy(changed, logits, s->vocab_size * sizeof(*logits));
    penalise_all(s, changed);
    xm_bar_ngrams(s->text.ids, s->text.n, s->sampling.no_repeat_ngram, changed,
                  s->vocab_size);
    xm_bar_tokens(s->barred.ids, s->barred.n, changed, s->vocab_size);
    xm_token_list_clear(&s->barred);
    if (s->allowed)
        bar_others(s->allowed, s->n_allowed, changed, s->vocab_size);
    s->allowed = NULL;
    return changed;
}

static struct xm_candidate_filter
filter_of(const struct xm_sampling *s)
{
    return (struct xm_candidate_filter){.temperature = s->temperature,
                                        .top_k = s->top_k,
                                        .top_p = s->top_p,
                                        .min_p = s->min_p};
}

enum xm_status
xm_sampler_next(struct xm_sampler *sampler, struct xm_sampler_scratch *scratch,
                const float *logits, int32_t *id, struct xm_error *err)
{
    const struct xm_sampling *s = &sampler->sampling;
    const struct xm_candidate_filter filter = filter_of(s);
    assert(scratch->vocab_size >= sampler->vocab_size);
    logits = change(sampler, logits, scratch->logits);
    const int32_t best = xm_find_largest(logits, sampler->vocab_size);
    if (best < 0)
        return xm_fail(err, XM_INVALID,
                       "no token can be chosen: all %zu logits are NaN or -infinity",
                       sampler->vocab_size);
    *id = best;
    if (s->temperature > 0.0f)
        *id = xm_candidates_draw(scratch->candidates, logits, sampler->vocab_size, best,
                                 &filter, random_bits(s->seed, sampler->n_drawn++));
    return XM_OK;
}

bool
xm_sampling_on_device(const struct xm_sampling *s, size_t vocab_size,
                      struct xm_token_choice *out)
{
    const struct xm_candidate_filter filter = filter_of(s);
    const float largest = ldexpf(1.0f, xm_weight_bits(vocab_size));
    const bool has_k = s->top_k > 0 && (size_t)s->top_k < vocab_size;
    *out = penalties_of(s);
    if (s->no_repeat_ngram || out->window > XM_TOKEN_WINDOW_MOST)
        return false;
    if (s->temperature == 0.0f)
        return true;
    out->seed = s->seed;
    out->least = (uint64_t)xm_candidates_least(&filter, largest);
    out->top_p = xm_weight_top_p(s->top_p);
    out->top_k = has_k ? (uint32_t)s->top_k : 0;
    out->steps = xm_weight_steps(s->temperature);
    out->largest = largest;
    out->draws = 1;
    return true;
}

bool
xm_sampler_on_device(const struct xm_sampler *sampler, struct xm_token_choice *out,
                     struct xm_seen_tokens *seen)
{
    const bool can = xm_sampling_on_device(&sampler->sampling, sampler->vocab_size, out);
    out->n = sampler->n_drawn;
    out->in_window = (uint32_t)sampler->n_accepted;
    out->oldest = (uint32_t)sampler->oldest;
    *seen = (struct xm_seen_tokens){.counts = sampler->counts.entries,
                                    .n = sampler->counts.n,
                                    .ring = out->window ? sampler->accepted : NULL};
    return can && sampler->barred.n == 0;
}

void
xm_sampler_skip(struct xm_sampler *sampler)
{
    sampler->n_drawn += sampler->sampling.temperature > 0.0f;
}

double
xm_log_sum_exp(const float *row, uint64_t n)
{
    double largest = -INFINITY, sum = 0.0;
    for (uint64_t i = 0; i < n; i++)
        largest = (double)row[i] > largest ? (double)row[i] : largest;
    for (uint64_t i = 0; i < n; i++)
        sum += exp((double)row[i] - largest);
    return largest + log(sum);
}
