/* SPDX-License-Identifier: Apache-2.0
 *
 * A sampler keeps only the accepted tokens and their counts. Penalties and forbidden tokens change
 * a copy of the logits in the scratch memory; if there are neither, nothing is copied.
 */
#include "plugin/text/sampler.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/text/candidates.h"
#include "plugin/text/dry.h"
#include "plugin/text/token_counts.h"
#include "plugin/text/token_list.h"
#include "plugin/text/token_weight.h"
#include "runtime/util/compiler.h"
#include "runtime/util/memory.h"

struct xm_sampler_scratch {
    size_t vocab_size;
    float *logits;     /* owned; [vocab_size], the changed copy */
    uint32_t *longest; /* owned; [vocab_size], `longest` of struct xm_dry_scratch */
    struct xm_candidates *candidates;
};

struct xm_sampler {
    struct xm_sampling sampling;
    size_t vocab_size;
    uint64_t n_drawn;     /* random numbers drawn so far */
    double most_surprise; /* mirostat's m (sampler.h), in bits */
    void *lists[3];       /* owned; copies of the lists of `sampling` */

    /* Used with penalties only: */
    /* counts of the tokens in the window (the last last_n accepted tokens) */
    struct xm_token_counts counts;
    /* Owned; the window, a ring buffer once it has last_n tokens. */
    int32_t *accepted;
    size_t n_accepted, capacity;
    size_t oldest; /* index of the oldest token in the ring */

    struct xm_token_list text;   /* accepted tokens, if their order matters */
    struct xm_token_list barred; /* forbidden in the next choice */
    uint32_t *matches;           /* owned; `matches` of struct xm_dry_scratch */
    size_t n_matches;            /* its capacity */
    const uint64_t *allowed;     /* bit set of the tokens allowed next; NULL: all */
    size_t n_allowed;            /* words of `allowed` */
};

static bool
has_penalties(const struct xm_sampling *s)
{
    return (s->repetition_penalty != 0.0f && s->repetition_penalty != 1.0f) ||
           s->presence_penalty != 0.0f || s->frequency_penalty != 0.0f;
}

/* Returns whether a parameter depends on the order of the accepted tokens, not just on their
 * counts. */
static bool
needs_text(const struct xm_sampling *s)
{
    return s->no_repeat_ngram > 0 || s->dry_multiplier > 0.0f || s->bad_words.n > 0;
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
    s->longest = xm_calloc(vocab_size, sizeof(*s->longest));
    s->candidates = xm_candidates_create(vocab_size);
    if (s->logits && s->longest && s->candidates)
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
    xm_free(scratch->longest);
    xm_candidates_free(scratch->candidates);
    xm_free(scratch);
}

/* Copies a list to new memory, which *owned points to. False: no memory. */
static bool
copy_list(const void *from, size_t n, size_t size, void **owned)
{
    if (n == 0)
        return true;
    *owned = xm_calloc(n, size);
    if (*owned)
        memcpy(*owned, from, n * size);
    return *owned != NULL;
}

static enum xm_status
copy_lists(struct xm_sampler *s, struct xm_error *err)
{
    struct xm_sampling *to = &s->sampling;
    if (!copy_list(to->logit_bias.list, to->logit_bias.n, sizeof(*to->logit_bias.list),
                   &s->lists[0]) ||
        !copy_list(to->dry_breakers.ids, to->dry_breakers.n,
                   sizeof(*to->dry_breakers.ids), &s->lists[1]) ||
        !copy_list(to->bad_words.ids, to->bad_words.n, sizeof(*to->bad_words.ids),
                   &s->lists[2]))
        return xm_no_memory(err, "the lists of a sampler");
    to->logit_bias.list = s->lists[0];
    to->dry_breakers.ids = s->lists[1];
    to->bad_words.ids = s->lists[2];
    return XM_OK;
}

static enum xm_status
check_biased(const struct xm_sampling *s, size_t vocab_size, struct xm_error *err)
{
    for (size_t i = 0; i < s->logit_bias.n; i++) {
        const int32_t id = s->logit_bias.list[i].id;
        if (id < 0 || (size_t)id >= vocab_size)
            return xm_fail(err, XM_INVALID,
                           "logit_bias names token %" PRId32
                           ", but the vocabulary has %zu tokens",
                           id, vocab_size);
    }
    return XM_OK;
}

enum xm_status
xm_sampler_create(const struct xm_sampling *sampling, size_t vocab_size,
                  struct xm_sampler **out, struct xm_error *err)
{
    *out = NULL;
    XM_TRY(xm_sampling_check(sampling, err));
    if (vocab_size == 0 || vocab_size > INT32_MAX)
        return xm_fail(err, XM_INVALID, "a vocabulary of %zu tokens", vocab_size);
    XM_TRY(check_biased(sampling, vocab_size, err));
    struct xm_sampler *s = xm_calloc(1, sizeof(*s));
    if (!s)
        return xm_no_memory(err, "a sampler");
    s->sampling = *sampling;
    s->vocab_size = vocab_size;
    xm_sampler_forget(s);
    const enum xm_status status = copy_lists(s, err);
    if (status == XM_OK)
        *out = s;
    else
        xm_sampler_free(s);
    return status;
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
    xm_free(sampler->matches);
    for (size_t i = 0; i < XM_ARRAY_LEN(sampler->lists); i++)
        xm_free(sampler->lists[i]);
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
        return XM_OK; /* the window is unlimited: counts suffice */
    if (s->n_accepted < window) {
        s->accepted[s->n_accepted++] = id;
        return XM_OK;
    }
    xm_token_counts_remove(&s->counts, s->accepted[s->oldest]);
    s->accepted[s->oldest] = id;
    s->oldest = (s->oldest + 1) % window;
    return XM_OK;
}

static bool
is_token(const struct xm_sampler *s, int32_t id)
{
    return id >= 0 && (size_t)id < s->vocab_size;
}

/* Appends to the text and, for dry, makes room for a match length for each token. */
static enum xm_status
accept_text(struct xm_sampler *s, const int32_t *ids, size_t n, struct xm_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (is_token(s, ids[i]) && !xm_token_list_add(&s->text, ids[i]))
            return xm_no_memory(err, "%zu accepted tokens", n);
    if (s->sampling.dry_multiplier <= 0.0f)
        return XM_OK;
    uint32_t *grown = xm_grow(s->matches, &s->n_matches, s->text.n, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "%zu accepted tokens", n);
    s->matches = grown;
    return XM_OK;
}

enum xm_status
xm_sampler_accept(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                  struct xm_error *err)
{
    if (n > 0 && needs_text(&sampler->sampling))
        XM_TRY(accept_text(sampler, ids, n, err));
    for (size_t i = 0; has_penalties(&sampler->sampling) && i < n; i++)
        if (is_token(sampler, ids[i]))
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
    const float tau = sampler->sampling.mirostat_tau;
    sampler->most_surprise = 2.0 * (tau > 0.0f ? (double)tau : 5.0);
    sampler->n_accepted = sampler->oldest = 0;
    xm_token_list_clear(&sampler->text);
    xm_token_counts_clear(&sampler->counts);
}

/* Returns the penalties as numbers; a penalty that is off gets the neutral value. */
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
               : xm_fail(err, XM_NO_MEMORY, "out of memory to bar %zu tokens", n);
}

/* Forbids the tokens that would complete one of the sequences. A -1 ends each sequence. */
static void
bar_sequences(const struct xm_token_view *sequences, const struct xm_token_list *text,
              float *logits, size_t vocab_size)
{
    const int32_t *ids = sequences->ids;
    for (size_t i = 0, first = 0; i < sequences->n; i++) {
        if (ids[i] >= 0)
            continue;
        const size_t n = i - first; /* number of tokens in the sequence */
        if (n > 0 && n - 1 <= text->n &&
            (n == 1 || memcmp(ids + first, text->ids + text->n - (n - 1),
                              (n - 1) * sizeof(*ids)) == 0))
            xm_bar_tokens(&ids[i - 1], 1, logits, vocab_size);
        first = i + 1;
    }
}

/* ---- top_n_sigma --------------------------------------------------------------------------- */

enum { LANES = 16 }; /* vector lanes: logits summed in parallel */

struct spread {
    double counts[LANES], sums[LANES], squares[LANES];
};

/* Adds the finite ones of n logits; n is a multiple of LANES. */
XM_FOR_AVX2_TOO static void
add_spread(struct spread *s, const float *logits, size_t n, float largest)
{
    for (size_t i = 0; i < n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            const float x = logits[i + k];
            const float finite = x >= -FLT_MAX ? x : largest;
            const double d = (double)finite - (double)largest;
            s->counts[k] += (double)(x >= -FLT_MAX ? 1.0f : 0.0f);
            s->sums[k] += d;
            s->squares[k] += d * d;
        }
}

/* Returns the standard deviation of the finite logits. Sums differences to the largest logit, which
 * keeps the cancellation in sum(d²) - sum(d)²/n small enough. */
static double
deviation_of(const float *logits, size_t n, float largest)
{
    struct spread s = {.counts = {0.0}};
    double sum = 0.0, square = 0.0, count = 0.0;
    const size_t whole = n / LANES * LANES;
    float rest[LANES];
    for (size_t k = 0; k < LANES; k++)
        rest[k] = whole + k < n ? logits[whole + k] : -INFINITY;
    add_spread(&s, logits, whole, largest);
    add_spread(&s, rest, LANES, largest);
    for (size_t k = 0; k < LANES; k++) {
        sum += s.sums[k];
        square += s.squares[k];
        count += s.counts[k];
    }
    const double mean = sum / count, variance = square / count - mean * mean;
    return variance > 0.0 ? sqrt(variance) : 0.0;
}

static void
bar_far(float n_sigma, float *logits, size_t n)
{
    const int32_t best = xm_find_largest(logits, n);
    if (best < 0 || logits[best] > FLT_MAX)
        return;
    const double sigma = deviation_of(logits, n, logits[best]);
    const double least = (double)logits[best] - (double)n_sigma * sigma;
    /* the smallest float that is kept */
    float least_kept = (float)least;
    if ((double)least_kept < least)
        least_kept = nextafterf(least_kept, INFINITY);
    for (size_t i = 0; i < n; i++)
        logits[i] = logits[i] >= least_kept ? logits[i] : -INFINITY;
}

/* ---- grammars ------------------------------------------------------------------------------ */

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
            logits[i] = bits >> i % 64 & 1 ? logits[i] : -INFINITY;
    }
}

/* ---- choice ------------------------------------------------------------------------------- */

static void
add_biases(const struct xm_bias_view *view, float *logits)
{
    for (size_t i = 0; i < view->n; i++) {
        const struct xm_token_bias *b = &view->list[i];
        const float x = logits[b->id] + b->bias;
        logits[b->id] = b->bias <= XM_BIAS_BARS            ? -INFINITY
                        : x > FLT_MAX && logits[b->id] < x ? FLT_MAX
                                                           : x;
    }
}

/* Returns the logits to choose from: the caller's own if no parameter changes any, else the changed
 * copy in `scratch`. */
static const float *
change(struct xm_sampler *s, const float *logits, struct xm_sampler_scratch *scratch)
{
    const struct xm_sampling *by = &s->sampling;
    float *changed = scratch->logits;
    if (s->counts.n == 0 && !needs_text(by) && by->logit_bias.n == 0 &&
        by->top_n_sigma <= 0.0f && s->barred.n == 0 && !s->allowed)
        return logits;
    memcpy(changed, logits, s->vocab_size * sizeof(*logits));
    add_biases(&by->logit_bias, changed);
    penalise_all(s, changed);
    if (by->dry_multiplier > 0.0f)
        xm_dry_penalise(by, s->text.ids, s->text.n,
                        &(struct xm_dry_scratch){s->matches, scratch->longest}, changed);
    if (by->no_repeat_ngram > 0)
        xm_bar_ngrams(s->text.ids, s->text.n, (uint32_t)by->no_repeat_ngram, changed,
                      s->vocab_size);
    bar_sequences(&by->bad_words, &s->text, changed, s->vocab_size);
    xm_bar_tokens(s->barred.ids, s->barred.n, changed, s->vocab_size);
    xm_token_list_clear(&s->barred);
    if (s->allowed)
        bar_others(s->allowed, s->n_allowed, changed, s->vocab_size);
    s->allowed = NULL;
    if (by->top_n_sigma > 0.0f)
        bar_far(by->top_n_sigma, changed, s->vocab_size);
    return changed;
}

/* xtc has a separate random sequence, so that the numbers for the draws are the same with and
 * without it. */
static const uint64_t xtc_seed = 0x7874630000000000u;

/* mirostat: adapts m by the surprise of the chosen token. */
static void
follow_surprise(struct xm_sampler *s, double surprise)
{
    const struct xm_sampling *by = &s->sampling;
    const double tau = by->mirostat_tau > 0.0f ? (double)by->mirostat_tau : 5.0;
    const double eta = by->mirostat_eta > 0.0f ? (double)by->mirostat_eta : 0.1;
    s->most_surprise -= eta * (surprise - tau);
}

static int32_t
draw(struct xm_sampler *s, struct xm_sampler_scratch *scratch, const float *logits,
     int32_t best)
{
    const struct xm_sampling *by = &s->sampling;
    const uint64_t n = s->n_drawn++;
    struct xm_draw d = {.random = random_bits(by->seed, n),
                        .xtc_random = random_bits(by->seed ^ xtc_seed, n),
                        .most_surprise = s->most_surprise};
    const int32_t id =
        xm_candidates_draw(scratch->candidates, logits, s->vocab_size, best, by, &d);
    if (by->mirostat == 2)
        follow_surprise(s, d.surprise);
    return id;
}

enum xm_status
xm_sampler_next(struct xm_sampler *sampler, struct xm_sampler_scratch *scratch,
                const float *logits, int32_t *id, struct xm_error *err)
{
    assert(scratch->vocab_size >= sampler->vocab_size);
    logits = change(sampler, logits, scratch);
    const int32_t best = xm_find_largest(logits, sampler->vocab_size);
    if (best < 0)
        return xm_fail(err, XM_INVALID,
                       "no token can be chosen: all %zu logits are NaN or -infinity",
                       sampler->vocab_size);
    *id = sampler->sampling.temperature > 0.0f ? draw(sampler, scratch, logits, best)
                                               : best;
    return XM_OK;
}

/* Returns whether a parameter is set that struct xm_token_choice, the device's parameters, cannot
 * express. */
static bool
is_for_host(const struct xm_sampling *s)
{
    const bool drawn = s->temperature > 0.0f;
    return needs_text(s) || s->logit_bias.n > 0 ||
           (drawn && (s->top_n_sigma > 0.0f || s->mirostat == 2 ||
                      s->xtc_probability > 0.0f || xm_candidates_is_typical(s)));
}

bool
xm_sampling_on_device(const struct xm_sampling *s, size_t vocab_size,
                      struct xm_token_choice *out)
{
    const float largest = ldexpf(1.0f, xm_weight_bits(vocab_size));
    const bool has_k = s->top_k > 0 && (size_t)s->top_k < vocab_size;
    *out = penalties_of(s);
    if (is_for_host(s) || out->window > XM_TOKEN_WINDOW_MOST)
        return false;
    if (s->temperature == 0.0f)
        return true;
    out->seed = s->seed;
    out->least = (uint64_t)xm_candidates_least(s, largest);
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
