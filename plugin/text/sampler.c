/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidates are a heap by logit: of a vocabulary of 150000 the few that top_k and top_p
 * leave are taken from the top, nothing is sorted.
 */
#include "plugin/text/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

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

enum xm_status
xm_sampler_create(const struct xm_sampling *sampling, size_t vocab_size,
                  struct xm_sampler **out, struct xm_error *err)
{
    *out = NULL;
    if (!(sampling->temperature >= 0.0f) || isinf(sampling->temperature))
        return xm_fail(err, XM_INVALID, "temperature is %g, expected 0 or more",
                       (double)sampling->temperature);
    if (!(sampling->top_p >= 0.0f && sampling->top_p <= 1.0f))
        return xm_fail(err, XM_INVALID, "top_p is %g, expected 0..1",
                       (double)sampling->top_p);
    if (vocab_size == 0 || vocab_size > INT32_MAX)
        return xm_fail(err, XM_INVALID, "a vocabulary of %zu tokens", vocab_size);
    struct xm_sampler *s = xm_calloc(1, sizeof(*s));
    struct candidate *candidates = xm_calloc(vocab_size, sizeof(*candidates));
    if (!s || !candidates) {
        xm_free(s);
        xm_free(candidates);
        return xm_fail(err, XM_NO_MEMORY, "no memory to sample from %zu tokens",
                       vocab_size);
    }
    *s = (struct xm_sampler){*sampling, vocab_size, 0, candidates};
    random_bits(s); /* seeding as in the paper's pcg32_srandom */
    s->state += sampling->seed;
    random_bits(s);
    *out = s;
    return XM_OK;
}

void
xm_sampler_free(struct xm_sampler *sampler)
{
    if (!sampler)
        return;
    xm_free(sampler->candidates);
    xm_free(sampler);
}

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

/* Leaves the candidates that top_k and top_p allow at the front. */
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
    return n;
}

enum xm_status
xm_sampler_next(struct xm_sampler *sampler, const float *logits, int32_t *id,
                struct xm_error *err)
{
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
