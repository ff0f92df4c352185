/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidates are a heap by logit: of a vocabulary of 150000 the few that top_k and top_p
 * leave are taken from the top, nothing is sorted.
 *
 * Penalties keep a count of each token in the window of accepted ones, and work on a copy
 * of the logits, as does what bars tokens. Without either neither exists.
 */
#include "plugin/text/sampler.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "plugin/text/token_list.h"
#include "runtime/util/memory.h"

struct candidate {
    float logit;
    int32_t id;
    double weight; /* exp((logit - largest) / temperature) */
};

struct xm_sampler {
    struct xm_sampling sampling;
    size_t vocab_size;
    uint64_t state;               /* PCG32 */
    struct candidate *candidates; /* owned; room for vocab_size */

    float *penalised; /* owned; vocab_size logits; NULL: nothing changes any     */

    /* With penalties only: */
    uint32_t *counts;  /* owned; of each token in the window                      */
    int32_t *accepted; /* owned; the window, as a ring when it has last_n tokens  */
    size_t n_accepted, capacity;
    size_t oldest;    /* in the ring */
    uint32_t *before; /* owned; with only_new: the prompt's part of `counts` */

    struct xm_token_list text;   /* accepted, with no_repeat_ngram              */
    struct xm_token_list barred; /* from the next choice                        */
};

static const uint64_t pcg_multiplier = 6364136223846793005u;
static const uint64_t pcg_increment = 1442695040888963407u;

static uint32_t
random_bits(struct xm_sampler *s)
{
    uint64_t old = s->state;
    s->state = old * pcg_multiplier + pcg_increment;
    uint32_t shifted = (uint32_t)((old >> 18 ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return shifted >> turn | shifted << (-turn & 31);
}

/* In [0, 1), 53 bits. */
static double
random_unit(struct xm_sampler *s)
{
    uint64_t high = random_bits(s) >> 5, low = random_bits(s) >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}

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

static void
seed(struct xm_sampler *s)
{
    random_bits(s); /* as in the paper's pcg32_srandom */
    s->state += s->sampling.seed;
    random_bits(s);
}

/* For logits that differ from the caller's. */
static bool
make_room(struct xm_sampler *s)
{
    if (!s->penalised)
        s->penalised = xm_calloc(s->vocab_size, sizeof(*s->penalised));
    return s->penalised != NULL;
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
    bool ok = s != NULL;
    if (ok) {
        s->sampling = *sampling;
        s->vocab_size = vocab_size;
        ok = (s->candidates = xm_calloc(vocab_size, sizeof(*s->candidates))) != NULL;
    }
    if (ok && (has_penalties(sampling) || sampling->no_repeat_ngram))
        ok = make_room(s);
    if (ok && has_penalties(sampling))
        ok = (s->counts = xm_calloc(vocab_size, sizeof(*s->counts))) != NULL;
    if (ok && s->counts && sampling->only_new)
        ok = (s->before = xm_calloc(vocab_size, sizeof(*s->before))) != NULL;
    if (!ok) {
        xm_sampler_free(s);
        return xm_fail(err, XM_NO_MEMORY, "no memory to sample from %zu tokens",
                       vocab_size);
    }
    seed(s);
    *out = s;
    return XM_OK;
}

void
xm_sampler_free(struct xm_sampler *sampler)
{
    if (!sampler)
        return;
    xm_free(sampler->candidates);
    xm_free(sampler->penalised);
    xm_free(sampler->counts);
    xm_free(sampler->accepted);
    xm_free(sampler->before);
    xm_token_list_free(&sampler->text);
    xm_token_list_free(&sampler->barred);
    xm_free(sampler);
}

/* --- penalties --- */

static enum xm_status
accept(struct xm_sampler *s, int32_t id, struct xm_error *err)
{
    size_t window = s->sampling.last_n > 0 ? (size_t)s->sampling.last_n : SIZE_MAX;
    if (s->n_accepted == window) {
        s->counts[s->accepted[s->oldest]]--;
        s->accepted[s->oldest] = id;
        s->oldest = (s->oldest + 1) % window;
    } else if (window == SIZE_MAX) {
        s->n_accepted++; /* nothing ever leaves the window: counts say it all */
    } else {
        int32_t *grown =
            xm_grow(s->accepted, &s->capacity, s->n_accepted + 1, sizeof(*grown));
        if (!grown)
            return xm_fail(err, XM_NO_MEMORY, "no memory for %zu accepted tokens",
                           s->n_accepted + 1);
        s->accepted = grown;
        s->accepted[s->n_accepted++] = id;
    }
    s->counts[id]++;
    return XM_OK;
}

enum xm_status
xm_sampler_accept(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                  struct xm_error *err)
{
    if (sampler->sampling.no_repeat_ngram && !xm_token_list_add_n(&sampler->text, ids, n))
        return xm_fail(err, XM_NO_MEMORY, "no memory for %zu accepted tokens", n);
    for (size_t i = 0; sampler->counts && i < n; i++)
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
    if (sampler->before)
        memcpy(sampler->before, sampler->counts,
               sampler->vocab_size * sizeof(*sampler->before));
    return XM_OK;
}

void
xm_sampler_forget(struct xm_sampler *sampler)
{
    sampler->n_accepted = sampler->oldest = 0;
    xm_token_list_clear(&sampler->text);
    if (sampler->counts)
        memset(sampler->counts, 0, sampler->vocab_size * sizeof(*sampler->counts));
    if (sampler->before)
        memset(sampler->before, 0, sampler->vocab_size * sizeof(*sampler->before));
}

/* `count` times in the text, `fresh` of them behind the prompt or anywhere. */
static float
penalise(const struct xm_sampling *s, float logit, uint32_t count, uint32_t fresh)
{
    if (count == 0)
        return logit;
    if (s->repetition_penalty != 0.0f)
        logit =
            logit > 0.0f ? logit / s->repetition_penalty : logit * s->repetition_penalty;
    return fresh ? logit - (float)fresh * s->frequency_penalty - s->presence_penalty
                 : logit;
}

/* The logits less the penalties, in s->penalised. */
static void
penalise_all(struct xm_sampler *s, const float *logits)
{
    for (size_t i = 0; i < s->vocab_size; i++) {
        const uint32_t count = s->counts[i];
        s->penalised[i] = penalise(&s->sampling, logits[i], count,
                                   s->before ? count - s->before[i] : count);
    }
}

/* --- tokens that may not come --- */

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
    return make_room(sampler) && xm_token_list_add_n(&sampler->barred, ids, n)
               ? XM_OK
               : xm_fail(err, XM_NO_MEMORY, "no memory to bar %zu tokens", n);
}

/* The logits to choose from: the caller's own when nothing changes any. */
static const float *
change(struct xm_sampler *s, const float *logits)
{
    if (!s->counts && !s->sampling.no_repeat_ngram && s->barred.n == 0)
        return logits;
    if (s->counts)
        penalise_all(s, logits);
    else
        memcpy(s->penalised, logits, s->vocab_size * sizeof(*logits));
    xm_bar_ngrams(s->text.ids, s->text.n, s->sampling.no_repeat_ngram, s->penalised,
                  s->vocab_size);
    xm_bar_tokens(s->barred.ids, s->barred.n, s->penalised, s->vocab_size);
    xm_token_list_clear(&s->barred);
    return s->penalised;
}

/* --- choice --- */

/* NaN compares false with everything. */
static int32_t
find_largest(const float *logits, size_t n)
{
    int32_t best = -1;
    for (size_t i = 0; i < n; i++)
        if (logits[i] > (best < 0 ? -INFINITY : logits[best]))
            best = (int32_t)i;
    return best;
}

static bool
is_better(const struct candidate *a, const struct candidate *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

static void
sift_down(struct candidate *heap, size_t n, size_t i)
{
    struct candidate moved = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < n && is_better(&heap[child + 1], &heap[child]))
            child++;
        if (child >= n || !is_better(&heap[child], &moved))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moved;
}

/* All tokens that can be chosen, in order of their ids; their weights' sum in *sum. */
static size_t
collect(struct xm_sampler *s, const float *logits, float largest, double *sum)
{
    size_t n = 0;
    *sum = 0.0;
    for (size_t i = 0; i < s->vocab_size; i++) {
        if (!(logits[i] > -INFINITY))
            continue;
        /* Equal to the largest comes first: infinity - infinity is NaN. */
        double weight = logits[i] == largest ? 1.0
                                             : exp(((double)logits[i] - (double)largest) /
                                                   (double)s->sampling.temperature);
        s->candidates[n++] = (struct candidate){logits[i], (int32_t)i, weight};
        *sum += weight;
    }
    return n;
}

/* Moves the best `k` to the front of the array, or fewer if their weights reach `enough`
 * before; returns how many. Those taken gather behind the shrinking heap. */
static size_t
take_best(struct candidate *c, size_t n, size_t k, double enough)
{
    double sum = 0.0;
    size_t taken = 0, left = n;
    for (size_t i = n / 2; i-- > 0;)
        sift_down(c, n, i);
    while (taken < k && left > 0 && (taken == 0 || sum < enough)) {
        struct candidate best = c[0];
        c[0] = c[--left];
        if (left > 0)
            sift_down(c, left, 0);
        c[left] = best;
        sum += best.weight;
        taken++;
    }
    memmove(c, c + n - taken, taken * sizeof(*c));
    return taken;
}

static double
sum_weights(const struct candidate *c, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += c[i].weight;
    return sum;
}

/* Those whose probability is at least `min_p` of the largest, moved to the front. */
static size_t
drop_unlikely(struct candidate *c, size_t n, double min_p)
{
    size_t kept = 0; /* the likeliest token has weight 1 and always stays */
    for (size_t i = 0; i < n; i++)
        if (c[i].weight >= min_p)
            c[kept++] = c[i];
    return kept;
}

/* Leaves the candidates that top_k, top_p and min_p allow at the front. */
static size_t
filter(struct xm_sampler *s, size_t n, double *sum)
{
    struct candidate *c = s->candidates;
    double top_p = (double)s->sampling.top_p;
    if (s->sampling.top_k > 0 && (size_t)s->sampling.top_k < n) {
        n = take_best(c, n, (size_t)s->sampling.top_k, INFINITY);
        *sum = sum_weights(c, n);
    }
    if (s->sampling.top_p < 1.0f) {
        n = take_best(c, n, n, top_p * *sum);
        *sum = sum_weights(c, n);
    }
    if (s->sampling.min_p > 0.0f) {
        n = drop_unlikely(c, n, (double)s->sampling.min_p);
        *sum = sum_weights(c, n);
    }
    return n;
}

enum xm_status
xm_sampler_next(struct xm_sampler *sampler, const float *logits, int32_t *id,
                struct xm_error *err)
{
    logits = change(sampler, logits);
    int32_t best = find_largest(logits, sampler->vocab_size);
    if (best < 0)
        return xm_fail(err, XM_INVALID,
                       "no token can be chosen: all %zu logits are NaN or -infinity",
                       sampler->vocab_size);
    *id = best;
    if (sampler->sampling.temperature == 0.0f)
        return XM_OK;
    double sum, passed = 0.0;
    size_t n = collect(sampler, logits, logits[best], &sum);
    n = filter(sampler, n, &sum);
    double point = random_unit(sampler) * sum;
    for (size_t i = 0; i < n; i++) {
        const struct candidate *c = &sampler->candidates[i];
        if (c->weight == 0.0)
            continue;
        *id = c->id; /* rounding may leave the point behind the last one */
        passed += c->weight;
        if (point < passed)
            break;
    }
    return XM_OK;
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
