/* SPDX-License-Identifier: Apache-2.0
 *
 * A token is a key: the bits of its logit, in an order of whole numbers, and below them its id,
 * inverted. Keys differ, and the larger one comes first. All that the filters need of the order is
 * a threshold, the smallest key that stays: it is found by histograms of the keys, each over the
 * range of the bin where the one before it has crossed the limit. Lists stay in the order of ids.
 *
 *     top_k > 0   k keys out of the row, no weights yet ──► weights of k tokens
 *     else        weights of all tokens ──► keys of those that may stay
 *                                                     └──► min_p ──► top_p ──► draw
 */
#include "plugin/text/candidates.h"

#include <assert.h>
#include <stdbool.h>

#include "plugin/text/token_weight.h"
#include "runtime/util/memory.h"

enum {
    LANES = 16, /* logits that are compared at once         */
    BLOCK = 64, /* tokens whose weights have a common sum   */
    DIGIT = 11, /* bits of a key that a histogram tells     */
    BINS = 1 << DIGIT,
    FEW = 4096 /* keys that top_k gathers at least, before it drops some */
};

struct xm_candidates {
    size_t vocab_size;
    float *shares;   /* owned; [vocab_size] of the largest weight, by id             */
    int64_t *sums;   /* owned; of the weights of each block of tokens                */
    uint64_t *keys;  /* owned; [vocab_size] of the candidates, in the order of ids   */
    uint64_t *spare; /* owned; [vocab_size] for histograms                           */
    uint64_t bins[BINS];
    float scale; /* 2^bits, the largest weight */
};

/* A list of keys, and what is left to reach. */
struct crossing {
    const uint64_t *keys;
    size_t n;
    uint64_t enough;
};

struct xm_candidates *
xm_candidates_create(size_t vocab_size)
{
    struct xm_candidates *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->vocab_size = vocab_size;
    c->scale = ldexpf(1.0f, xm_weight_bits(vocab_size));
    c->shares = xm_calloc(vocab_size, sizeof(*c->shares));
    c->sums = xm_calloc(vocab_size / BLOCK + 1, sizeof(*c->sums));
    c->keys = xm_calloc(vocab_size, sizeof(*c->keys));
    c->spare = xm_calloc(vocab_size, sizeof(*c->spare));
    if (c->shares && c->sums && c->keys && c->spare)
        return c;
    xm_candidates_free(c);
    return NULL;
}

void
xm_candidates_free(struct xm_candidates *c)
{
    if (!c)
        return;
    xm_free(c->shares);
    xm_free(c->sums);
    xm_free(c->keys);
    xm_free(c->spare);
    xm_free(c);
}

/* ---- the largest logit ------------------------------------------------------------------ */

/* NaN compares false with everything. */
static float
largest_of(const float *logits, size_t n)
{
    float lanes[LANES], largest = -INFINITY;
    size_t i = 0;
    for (int k = 0; k < LANES; k++)
        lanes[k] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] =
                logits[i + (size_t)k] > lanes[k] ? logits[i + (size_t)k] : lanes[k];
    for (int k = 0; k < LANES; k++)
        largest = lanes[k] > largest ? lanes[k] : largest;
    for (; i < n; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    return largest;
}

int32_t
xm_find_largest(const float *logits, size_t n)
{
    const float largest = largest_of(logits, n);
    size_t i = 0;
    if (!(largest > -INFINITY))
        return -1;
    while (!(logits[i] == largest))
        i++;
    return (int32_t)i;
}

/* ---- keys ------------------------------------------------------------------------------- */

static uint64_t
key_of(float logit, uint32_t id)
{
    const uint32_t sign = 1u << 31;
    uint32_t bits;
    logit += 0.0f; /* of the two zeros none is larger */
    memcpy(&bits, &logit, sizeof(bits));
    bits = bits & sign ? ~bits : bits | sign;
    return (uint64_t)bits << 32 | (uint32_t)~id;
}

static uint32_t
id_of(uint64_t key)
{
    return (uint32_t)~key;
}

static int64_t
weight_of(const struct xm_candidates *c, uint32_t id)
{
    return (int64_t)(c->shares[id] * c->scale);
}

static int
bits_in(uint64_t x)
{
    int bits = 0;
    for (; x > 0; x >>= 1)
        bits++;
    return bits;
}

/* Narrows the list to the bin in which the sum from the largest key on reaches what is enough.
 * Weights are those of the tokens, or 1 each. */
static void
narrow(struct xm_candidates *c, struct crossing *at, uint64_t least, uint64_t most,
       bool by_weight)
{
    const int digits = bits_in(most - least);
    const int shift = digits > DIGIT ? digits - DIGIT : 0;
    size_t n = 0, bin = (size_t)((most - least) >> shift);
    memset(c->bins, 0, (bin + 1) * sizeof(*c->bins));
    for (size_t i = 0; i < at->n; i++)
        c->bins[(at->keys[i] - least) >> shift] +=
            by_weight ? (uint64_t)weight_of(c, id_of(at->keys[i])) : 1;
    for (; bin > 0 && c->bins[bin] < at->enough; bin--)
        at->enough -= c->bins[bin];
    for (size_t i = 0; i < at->n; i++) {
        c->spare[n] = at->keys[i];
        n += (at->keys[i] - least) >> shift == bin;
    }
    at->keys = c->spare;
    at->n = n;
}

/* The smallest key of the fewest best whose weights reach `enough`; of all, where none do. */
static uint64_t
find_threshold(struct xm_candidates *c, size_t n, uint64_t enough, bool by_weight)
{
    struct crossing at = {c->keys, n, enough};
    for (;;) {
        uint64_t least = UINT64_MAX, most = 0;
        for (size_t i = 0; i < at.n; i++) {
            least = at.keys[i] < least ? at.keys[i] : least;
            most = at.keys[i] > most ? at.keys[i] : most;
        }
        if (at.n <= 1 || least == most)
            return least;
        narrow(c, &at, least, most, by_weight);
    }
}

/* Keeps the candidates from the threshold on; how many these are. */
static size_t
keep_best(struct xm_candidates *c, size_t n, uint64_t threshold)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = c->keys[i];
        c->keys[kept] = key;
        kept += key >= threshold;
    }
    return kept;
}

/* ---- top_k ------------------------------------------------------------------------------ */

static bool
is_any_above(const float *logits, float floor)
{
    int n = 0;
    for (int k = 0; k < LANES; k++)
        n += logits[k] > floor;
    return n > 0;
}

/* Gathers the keys of the best k tokens, in the order of ids; how many there are. Each time that
 * enough are gathered all but the best k are dropped, and what is not above the k-th of these is
 * not looked at any more: of equal logits the lower id comes first. */
static size_t
gather_best(struct xm_candidates *c, const float *logits, size_t vocab_size, size_t k)
{
    const size_t wanted = k < FEW / 2 ? FEW : 2 * k;
    const size_t room = wanted < vocab_size ? wanted : vocab_size;
    float floor = -INFINITY;
    size_t n = 0;
    for (size_t first = 0; first < vocab_size; first += LANES) {
        const size_t left = vocab_size - first;
        const size_t end = first + (left < LANES ? left : LANES);
        if (left >= LANES && !is_any_above(logits + first, floor))
            continue;
        for (size_t i = first; i < end; i++)
            if (logits[i] > floor)
                c->keys[n++] = key_of(logits[i], (uint32_t)i);
        if (n + LANES > room && end < vocab_size && n > k) {
            const uint64_t threshold = find_threshold(c, n, k, false);
            n = keep_best(c, n, threshold);
            floor = logits[id_of(threshold)];
        }
    }
    return n > k ? keep_best(c, n, find_threshold(c, n, k, false)) : n;
}

static float
difference(float largest, float logit)
{
    return logit == largest ? 0.0f : largest - logit; /* infinity - infinity is NaN */
}

/* The weights of the candidates; their sum. */
static int64_t
weigh_candidates(struct xm_candidates *c, const float *logits, size_t n, float largest,
                 float steps)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = id_of(c->keys[i]);
        c->shares[id] = xm_weight_share(difference(largest, logits[id]), steps);
        sum += weight_of(c, id);
    }
    return sum;
}

/* ---- all tokens --------------------------------------------------------------------------- */

/* The weights of a block of tokens; their sum. Loops without branches, which compilers make vector
 * code of. */
static int64_t
weigh_block(float *shares, const float *logits, size_t n, float largest, float steps,
            float scale)
{
    int64_t sum = 0;
    if (largest < INFINITY)
        for (size_t i = 0; i < n; i++)
            shares[i] = xm_weight_exponent(largest - logits[i], steps);
    else
        for (size_t i = 0; i < n; i++)
            shares[i] = xm_weight_exponent(difference(largest, logits[i]), steps);
    for (size_t i = 0; i < n; i++)
        shares[i] = xm_weight_power(shares[i]);
    for (size_t i = 0; i < n; i++)
        sum += (int64_t)(shares[i] * scale);
    return sum;
}

static int64_t
weigh_all(struct xm_candidates *c, const float *logits, size_t n, float largest,
          float steps)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t left = n - i;
        c->sums[i / BLOCK] =
            weigh_block(c->shares + i, logits + i, left < BLOCK ? left : BLOCK, largest,
                        steps, c->scale);
        sum += c->sums[i / BLOCK];
    }
    return sum;
}

/* Gathers the keys of the tokens whose weight is at least `least`, > 0; how many there are. */
static size_t
gather_likely(struct xm_candidates *c, const float *logits, size_t vocab_size,
              int64_t least)
{
    size_t n = 0;
    for (size_t first = 0; first < vocab_size; first += BLOCK) {
        const size_t left = vocab_size - first;
        const size_t end = first + (left < BLOCK ? left : BLOCK);
        if (c->sums[first / BLOCK] < least)
            continue;
        for (size_t i = first; i < end; i++) {
            c->keys[n] = key_of(logits[i], (uint32_t)i);
            n += weight_of(c, (uint32_t)i) >= least;
        }
    }
    return n;
}

/* ---- the draw ----------------------------------------------------------------------------- */

/* A point below the sum, which is > 0. */
static int64_t
point_in(int64_t sum, double unit)
{
    const int64_t point = (int64_t)(unit * (double)sum);
    return point < sum ? point : sum - 1;
}

static int32_t
draw_of_all(const struct xm_candidates *c, int64_t sum, double unit)
{
    int64_t left = point_in(sum, unit);
    size_t i = 0;
    for (; left >= c->sums[i / BLOCK]; i += BLOCK)
        left -= c->sums[i / BLOCK];
    for (; left >= weight_of(c, (uint32_t)i); i++)
        left -= weight_of(c, (uint32_t)i);
    return (int32_t)i;
}

static int32_t
draw_of_candidates(const struct xm_candidates *c, size_t n, double unit)
{
    int64_t sum = 0, left;
    size_t i = 0;
    for (size_t k = 0; k < n; k++)
        sum += weight_of(c, id_of(c->keys[k]));
    left = point_in(sum, unit);
    for (; left >= weight_of(c, id_of(c->keys[i])); i++)
        left -= weight_of(c, id_of(c->keys[i]));
    return (int32_t)id_of(c->keys[i]);
}

/* What the weights of the best tokens have to reach: top_p of their sum. */
static int64_t
enough_of(int64_t sum, float top_p)
{
    const int64_t enough = (int64_t)ceil((double)top_p * (double)sum);
    return enough < 1 ? 1 : enough < sum ? enough : sum;
}

/* Below this weight min_p leaves none; it is > 0. */
static int64_t
least_of(const struct xm_candidates *c, float min_p)
{
    const int64_t least = (int64_t)ceil((double)min_p * (double)c->scale);
    return least > 1 ? least : 1;
}

/* min_p before top_p: both leave the beginning of one order, and what is enough for top_p is known
 * already. */
static int32_t
filter_and_draw(struct xm_candidates *c, size_t n, int64_t enough, int64_t least,
                double unit)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = c->keys[i];
        c->keys[kept] = key;
        kept += weight_of(c, id_of(key)) >= least;
    }
    if (enough < INT64_MAX)
        kept = keep_best(c, kept, find_threshold(c, kept, (uint64_t)enough, true));
    return draw_of_candidates(c, kept, unit);
}

int32_t
xm_candidates_draw(struct xm_candidates *c, const float *logits, size_t n, int32_t best,
                   const struct xm_candidate_filter *filter, double unit)
{
    assert(best >= 0 && n <= c->vocab_size);
    const float largest = logits[best], steps = xm_weight_steps(filter->temperature);
    const bool is_k = filter->top_k > 0 && (size_t)filter->top_k < n;
    int64_t least = least_of(c, filter->min_p);
    size_t n_best = 0;
    if (is_k)
        n_best = gather_best(c, logits, n, (size_t)filter->top_k);
    const int64_t sum = is_k ? weigh_candidates(c, logits, n_best, largest, steps)
                             : weigh_all(c, logits, n, largest, steps);
    if (!is_k && filter->top_p >= 1.0f && filter->min_p <= 0.0f)
        return draw_of_all(c, sum, unit);
    const int64_t enough =
        filter->top_p < 1.0f ? enough_of(sum, filter->top_p) : INT64_MAX;
    if (!is_k) {
        /* Tokens of smaller weights have less together than what top_p may leave out. */
        const int64_t rest = enough < sum ? (sum - enough) / (int64_t)n + 1 : 1;
        n_best = gather_likely(c, logits, n, rest > least ? rest : least);
    }
    return filter_and_draw(c, n_best, enough, least, unit);
}
