/* SPDX-License-Identifier: Apache-2.0
 *
 * A token is represented by a key: the bits of its logit, mapped to an integer of the same order,
 * and below them its inverted id. Keys are distinct, and the token with the larger key comes first.
 * A filter only needs a threshold, the smallest key that stays. It is found by histograms of the
 * keys: each covers the range of the bin in which the histogram before it reached the limit. Lists
 * of keys stay in the order of ids.
 *
 *     top_k > 0   k keys out of the row ──► their weights ──► min_p ──► top_p ──► draw
 *     else        weights of all tokens ──► a sample of them guesses where top_p ends ──► min_p,
 *                 and keys of the tokens near that place ──► top_p ──► draw
 *
 * typical_p has another order, with other keys. A token that typical_p or xtc drops gets the weight
 * 0.
 */
#include "plugin/text/candidates.h"

#include <assert.h>

#include "plugin/text/candidates_parts.h"
#include "runtime/util/memory.h"

/* A list of keys, and the weight (or number of keys) that is still missing. */
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
    c->shares = xm_calloc(vocab_size + BLOCK, sizeof(*c->shares));
    c->sums = xm_calloc(vocab_size / BLOCK + 1, sizeof(*c->sums));
    c->kept = xm_calloc(vocab_size / BLOCK + 1, sizeof(*c->kept));
    c->keys = xm_calloc(vocab_size, sizeof(*c->keys));
    c->spare = xm_calloc(vocab_size, sizeof(*c->spare));
    if (c->shares && c->sums && c->kept && c->keys && c->spare)
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
    xm_free(c->kept);
    xm_free(c->keys);
    xm_free(c->spare);
    xm_free(c);
}

/* ---- the largest logit ------------------------------------------------------------ */

/* Returns the largest of n logits, ignoring NaN, because NaN compares false with everything. */
XM_FOR_AVX2_TOO static float
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
    enum { AT_ONCE = 2048 };
    float largest = -INFINITY;
    size_t first = 0; /* the first part of the row that has the largest */
    for (size_t i = 0; i < n; i += AT_ONCE) {
        const float of = largest_of(logits + i, n - i < AT_ONCE ? n - i : AT_ONCE);
        first = of > largest ? i : first;
        largest = of > largest ? of : largest;
    }
    if (!(largest > -INFINITY))
        return -1;
    while (!(logits[first] == largest))
        first++;
    return (int32_t)first;
}

/* ---- keys ------------------------------------------------------------------------- */

static int
bits_in(uint64_t x)
{
    int bits = 0;
    for (; x > 0; x >>= 1)
        bits++;
    return bits;
}

/* Narrows the list to the bin in which the sum, from the largest key down, reaches at->enough. Each
 * key counts with its token's weight or, without by_weight, as 1. */
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

uint64_t
xm_candidates_threshold(struct xm_candidates *c, size_t n, uint64_t enough,
                        bool by_weight)
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

size_t
xm_candidates_keep_best(struct xm_candidates *c, size_t n, uint64_t threshold)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = c->keys[i];
        c->keys[kept] = key;
        kept += key >= threshold;
    }
    return kept;
}

/* ---- top_k ------------------------------------------------------------------------ */

static bool
is_any_above(const float *logits, float floor)
{
    int n = 0;
    for (int k = 0; k < LANES; k++)
        n += logits[k] > floor;
    return n > 0;
}

/* Returns a logit that at least k tokens most likely reach, but not many more. Only one of every
 * SAMPLED tokens is looked at: the result is the logit of rank k / SAMPLED among these, plus a
 * margin of four standard deviations. */
static float
guess_floor(struct xm_candidates *c, const float *logits, size_t vocab_size, size_t k)
{
    const double part = (double)k / SAMPLED;
    const size_t rank = (size_t)(part + 4.0 * sqrt(part)) + 8;
    size_t n = 0;
    for (size_t i = 0; i < vocab_size; i += SAMPLED)
        if (logits[i] > -INFINITY)
            c->keys[n++] = key_of(logits[i], (uint32_t)i);
    return rank < n ? logits[id_of(xm_candidates_threshold(c, n, rank, false))]
                    : -INFINITY;
}

/* Gathers the keys of the best k tokens above `floor`, in the order of ids. Returns their number.
 * Whenever enough keys are gathered, all but the best k are dropped, and the floor rises to the
 * k-th logit: a later token with an equal logit has a higher id and comes after it. */
static size_t
gather_above(struct xm_candidates *c, const float *logits, size_t vocab_size, size_t k,
             float floor)
{
    const size_t wanted = k < FEW / 2 ? FEW : 2 * k;
    const size_t room = wanted + LANES < vocab_size ? wanted + LANES : vocab_size;
    size_t n = 0;
    for (size_t first = 0; first < vocab_size; first += LANES) {
        const size_t left = vocab_size - first;
        const size_t end = first + (left < LANES ? left : LANES);
        if (left >= LANES && !is_any_above(logits + first, floor))
            continue;
        for (size_t i = first; i < end; i++) {
            c->keys[n] = key_of(logits[i], (uint32_t)i);
            n += logits[i] > floor;
        }
        if (n + LANES > room && end < vocab_size && n > k) {
            const uint64_t threshold = xm_candidates_threshold(c, n, k, false);
            n = xm_candidates_keep_best(c, n, threshold);
            floor = logits[id_of(threshold)];
        }
    }
    return n > k ? xm_candidates_keep_best(c, n, xm_candidates_threshold(c, n, k, false))
                 : n;
}

static size_t
gather_best(struct xm_candidates *c, const float *logits, size_t vocab_size, size_t k)
{
    const float floor = guess_floor(c, logits, vocab_size, k);
    const size_t n = gather_above(c, logits, vocab_size, k, floor);
    return n >= k || floor == -INFINITY
               ? n
               : gather_above(c, logits, vocab_size, k, -INFINITY);
}

/* Computes the weights of the n candidates. Returns their sum. */
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

/* ---- all tokens ------------------------------------------------------------------- */

/* Computes the weights of a block of tokens. Returns their sum. The loops have no branches, so that
 * compilers vectorise them. */
XM_FOR_AVX2_TOO static int64_t
weigh_block(float *shares, const float *logits, float largest, float steps, float scale)
{
    if (largest < INFINITY)
        for (size_t i = 0; i < BLOCK; i++)
            shares[i] = xm_weight_exponent(largest - logits[i], steps);
    else
        for (size_t i = 0; i < BLOCK; i++)
            shares[i] = xm_weight_exponent(difference(largest, logits[i]), steps);
    for (size_t i = 0; i < BLOCK; i++)
        shares[i] = xm_weight_power(shares[i]);
    return sum_weights(shares, scale);
}

static int64_t
weigh_all(struct xm_candidates *c, const float *logits, size_t n, float largest,
          float steps)
{
    float rest[BLOCK];
    int64_t sum = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        c->sums[i / BLOCK] = weigh_block(c->shares + i, whole_block(logits, i, n, rest),
                                         largest, steps, c->scale);
        sum += c->sums[i / BLOCK];
    }
    return sum;
}

/* Bins of shares by the first bits of the float: a higher bin has larger shares. */
enum {
    LAST_BIN = XM_WEIGHT_LEAST << SHARE_DIGIT,
    BIN_SHIFT = FLT_MANT_DIG - 1 - SHARE_DIGIT,
    /* first bits of the smallest share */
    FIRST_SHARE = (127 - XM_WEIGHT_LEAST) << SHARE_DIGIT
};

static size_t
bin_of(float share)
{
    return (bits_of(share) >> BIN_SHIFT) - FIRST_SHARE;
}

/* Returns the smallest share of a bin. */
static float
share_of_bin(size_t bin)
{
    const uint32_t bits = (uint32_t)(bin + FIRST_SHARE) << BIN_SHIFT;
    float share;
    memcpy(&share, &bits, sizeof(share));
    return share;
}

/* Returns the share of the smallest weight that is at least `weight`. */
static float
share_of(const struct xm_candidates *c, int64_t weight)
{
    const float rounded = (float)weight;
    return ((int64_t)rounded < weight ? nextafterf(rounded, INFINITY) : rounded) /
           c->scale;
}

/* The tokens that stay: all with a share of at least `high`, none with a share below `low`; of
 * those between, the ones whose key is at least `threshold`. */
struct staying {
    float low, high;
    uint64_t threshold;
};

/* Guesses between which shares the last token that stays most likely is, so that the tokens below
 * it weigh `left_out`. One of every SAMPLED tokens is looked at: the sum of their weights estimates
 * that of all tokens, within a few standard deviations. */
static struct staying
guess_staying(struct xm_candidates *c, size_t vocab_size, int64_t left_out)
{
    struct staying s = {0.0f, INFINITY, 0};
    double below = 0.0, variance = 0.0;
    memset(c->bins, 0, (LAST_BIN + 1) * sizeof(*c->bins));
    for (size_t i = 0; i < vocab_size; i += SAMPLED)
        c->bins[bin_of(c->shares[i])] += (uint64_t)weight_of(c, (uint32_t)i);
    for (size_t bin = 0; bin <= LAST_BIN && s.high == INFINITY; bin++) {
        const double sum = (double)c->bins[bin] * SAMPLED;
        const float end = share_of_bin(bin + 1);
        below += sum;
        variance += sum * SAMPLED * (double)(end * c->scale);
        if (below + 3.0 * sqrt(variance) <= (double)left_out)
            s.low = end;
        if (below - 3.0 * sqrt(variance) > (double)left_out)
            s.high = end;
    }
    if (s.high == INFINITY) /* a few tokens have most of the weight to leave out */
        s.low = 0.0f;
    return s;
}

static int64_t
sum_from(const float *shares, float least, float scale)
{
    float kept[BLOCK];
    for (size_t i = 0; i < BLOCK; i++)
        kept[i] = shares[i] >= least ? shares[i] : 0.0f;
    return sum_weights(kept, scale);
}

/* Returns the sum of the weights of the tokens with a share of at least s->high, and stores its
 * parts by block in `kept`. Gathers the keys of the *n tokens between s->low and s->high, in the
 * order of ids. Skips blocks whose weights sum to less than `least`. */
XM_FOR_AVX2_TOO static int64_t
part_tokens(struct xm_candidates *c, const float *logits, size_t vocab_size,
            int64_t least, const struct staying *s, size_t *n)
{
    const uint32_t low = bits_of(s->low), span = bits_of(s->high) - low;
    int64_t all = 0;
    *n = 0;
    for (size_t first = 0; first < vocab_size; first += BLOCK) {
        int64_t *kept = &c->kept[first / BLOCK];
        *kept = 0;
        if (c->sums[first / BLOCK] < least)
            continue;
        uint64_t between = find_between(c->shares + first, low, span);
        for (; between > 0; between &= between - 1) {
            const size_t i = first + (size_t)xm_lowest_bit(between);
            c->keys[(*n)++] = key_of(logits[i], (uint32_t)i);
        }
        if (s->high < INFINITY)
            *kept = sum_from(c->shares + first, s->high, c->scale);
        all += *kept;
    }
    return all;
}

int64_t
xm_candidates_sum(const struct xm_candidates *c, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += weight_of(c, id_of(c->keys[i]));
    return sum;
}

int64_t
xm_candidates_keep(struct xm_candidates *c, size_t n, uint64_t threshold)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = id_of(c->keys[i]);
        const int64_t weight = c->keys[i] >= threshold ? weight_of(c, id) : 0;
        c->kept[id / BLOCK] += weight;
        sum += weight;
    }
    return sum;
}

/* Finds the best tokens whose weights reach `enough`, or all tokens with a weight of at least
 * `rest` if these do not reach it. Returns the sum of their weights, and stores its parts by block
 * in `kept`. Tokens with a weight below `rest`, which is at least min_p's limit, do not stay. */
static int64_t
keep_staying(struct xm_candidates *c, const float *logits, size_t vocab_size,
             int64_t rest, int64_t enough, struct staying *s)
{
    const float rest_share = share_of(c, rest);
    size_t n;
    s->low = fmaxf(s->low, rest_share);
    s->high = fmaxf(s->high, rest_share);
    int64_t sum = part_tokens(c, logits, vocab_size, rest, s, &n);
    if (sum >= enough || (s->low > rest_share &&
                          xm_candidates_sum(c, n) < enough - sum)) { /* a bad guess */
        *s = (struct staying){rest_share, INFINITY, 0};
        sum = part_tokens(c, logits, vocab_size, rest, s, &n);
    }
    s->threshold = xm_candidates_threshold(c, n, (uint64_t)(enough - sum), true);
    return sum + xm_candidates_keep(c, n, s->threshold);
}

/* ---- what is left --------------------------------------------------------------------------- */

/* Returns the largest weight of the first n candidates. */
static float
largest_weight(const struct xm_candidates *c, size_t n)
{
    int64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t weight = weight_of(c, id_of(c->keys[i]));
        most = weight > most ? weight : most;
    }
    return (float)most;
}

/* Returns the largest weight of all n tokens. */
static float
largest_weight_of_all(const struct xm_candidates *c, size_t n)
{
    float most = 0.0f;
    for (size_t i = 0; i < n; i++)
        most = c->shares[i] > most ? c->shares[i] : most;
    return (float)(int64_t)(most * c->scale);
}

/* ---- xtc ------------------------------------------------------------------------------------ */

static const float threshold_unsaid = 0.1f;

/* Returns the smallest weight of the tokens that xtc drops (all but the last of them), where the
 * kept tokens weigh `sum`; INT64_MAX: xtc drops none. */
static int64_t
excluded_weight(const struct xm_sampling *s, const struct xm_draw *d, int64_t sum)
{
    const float threshold = s->xtc_threshold > 0.0f ? s->xtc_threshold : threshold_unsaid;
    const double unit = (double)(d->xtc_random >> 11) * 0x1p-53;
    if (!(unit < (double)s->xtc_probability) || threshold > 0.5f)
        return INT64_MAX;
    const int64_t least = (int64_t)ceil((double)threshold * (double)sum);
    return least > 1 ? least : 1;
}

/* Applies xtc: drops the candidates whose weight is at least `weight`, except the last of them in
 * the order. Returns the number of candidates left. */
static size_t
exclude(struct xm_candidates *c, size_t n, int64_t weight)
{
    uint64_t last = UINT64_MAX; /* smallest key with at least this weight */
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (weight_of(c, id_of(c->keys[i])) >= weight && c->keys[i] < last)
            last = c->keys[i];
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = c->keys[i];
        c->keys[kept] = key;
        kept += key <= last;
    }
    return kept;
}

static bool
stays(const struct xm_candidates *c, const float *logits, const struct staying *s,
      size_t i)
{
    const float share = c->shares[i];
    return share >= s->high ||
           (share >= s->low && key_of(logits[i], (uint32_t)i) >= s->threshold);
}

/* Applies xtc to all tokens that `s` keeps: drops those whose weight is at least `weight`, except
 * the last of them in the order. Returns the sum of the weights of the tokens left. */
static int64_t
exclude_staying(struct xm_candidates *c, const float *logits, size_t vocab_size,
                const struct staying *s, int64_t sum, int64_t weight)
{
    uint64_t last = UINT64_MAX;
    size_t n = 0;
    for (size_t first = 0; first < vocab_size; first += BLOCK) {
        const size_t end = end_of_block(first, vocab_size);
        if (c->kept[first / BLOCK] < weight)
            continue;
        for (size_t i = first; i < end; i++) {
            const uint64_t key = key_of(logits[i], (uint32_t)i);
            if (weight_of(c, (uint32_t)i) < weight || !stays(c, logits, s, i))
                continue;
            c->keys[n++] = key;
            last = key < last ? key : last;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = id_of(c->keys[i]);
        if (c->keys[i] == last)
            continue;
        sum -= weight_of(c, id);
        c->kept[id / BLOCK] -= weight_of(c, id);
        c->shares[id] = 0.0f; /* below the share of every token that stays */
    }
    return sum;
}

/* ---- the draw --------------------------------------------------------------------- */

static int32_t
draw_of_all(const struct xm_candidates *c, int64_t sum, uint64_t random)
{
    int64_t left = xm_weight_point(sum, random);
    size_t i = 0;
    for (; left >= c->sums[i / BLOCK]; i += BLOCK)
        left -= c->sums[i / BLOCK];
    for (; left >= weight_of(c, (uint32_t)i); i++)
        left -= weight_of(c, (uint32_t)i);
    return (int32_t)i;
}

static int32_t
draw_of_staying(const struct xm_candidates *c, const float *logits, size_t vocab_size,
                const struct staying *s, int64_t sum, uint64_t random)
{
    int64_t left = xm_weight_point(sum, random);
    size_t i = 0;
    for (; left >= c->kept[i / BLOCK]; i += BLOCK)
        left -= c->kept[i / BLOCK];
    for (; i + 1 < vocab_size; i++) {
        const bool is_left = stays(c, logits, s, i);
        if (is_left && left < weight_of(c, (uint32_t)i))
            break;
        left -= is_left ? weight_of(c, (uint32_t)i) : 0;
    }
    return (int32_t)i;
}

static int32_t
draw_of_candidates(const struct xm_candidates *c, int64_t sum, uint64_t random)
{
    int64_t left = xm_weight_point(sum, random);
    size_t i = 0;
    for (; left >= weight_of(c, id_of(c->keys[i])); i++)
        left -= weight_of(c, id_of(c->keys[i]));
    return (int32_t)id_of(c->keys[i]);
}

int64_t
xm_candidates_least(const struct xm_sampling *s, float largest)
{
    float share = s->min_p; /* smallest kept weight / largest weight */
    const int64_t least = (int64_t)ceil((double)share * (double)largest);
    return least > 1 ? least : 1;
}

/* Applies min_p and top_p to the n candidates. min_p may run first, because both keep a beginning
 * of the same order and `enough`, the weight that top_p must reach (INT64_MAX: no top_p), is
 * already known. Returns the number of candidates left. */
static size_t
filter(struct xm_candidates *c, size_t n, int64_t enough, int64_t least)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = c->keys[i];
        c->keys[kept] = key;
        kept += weight_of(c, id_of(key)) >= least;
    }
    return enough < INT64_MAX
               ? xm_candidates_keep_best(
                     c, kept, xm_candidates_threshold(c, kept, (uint64_t)enough, true))
               : kept;
}

static int32_t
draw_of_best(struct xm_candidates *c, const float *logits, size_t n, float largest,
             const struct xm_sampling *s, const struct xm_draw *d)
{
    size_t kept = gather_best(c, logits, n, (size_t)s->top_k);
    int64_t sum =
        weigh_candidates(c, logits, kept, largest, xm_weight_steps(s->temperature));
    if (xm_candidates_is_typical(s))
        kept = xm_candidates_keep_typical(c, logits, kept, largest, s->typical_p, &sum);
    const int64_t enough = s->top_p < 1.0f ? enough_for(s->top_p, sum) : INT64_MAX;
    kept = filter(c, kept, enough, xm_candidates_least(s, largest_weight(c, kept)));
    sum = xm_candidates_sum(c, kept);
    if (s->xtc_probability > 0.0f) {
        kept = exclude(c, kept, excluded_weight(s, d, sum));
        sum = xm_candidates_sum(c, kept);
    }
    return draw_of_candidates(c, sum, d->random);
}

/* Draws a token from the whole row, without top_k: applies typical_p, min_p, top_p and xtc. */
static int32_t
draw_of_row(struct xm_candidates *c, const float *logits, size_t n, float largest,
            const struct xm_sampling *s, const struct xm_draw *d)
{
    const float steps = xm_weight_steps(s->temperature);
    int64_t sum = weigh_all(c, logits, n, largest, steps);
    float most = c->scale;
    if (xm_candidates_is_typical(s)) {
        struct xm_nearness near;
        sum = xm_candidates_find_typical(c, logits, n, largest, steps, s->typical_p, sum,
                                         &near);
        if (s->top_p >= 1.0f && s->min_p <= 0.0f && s->xtc_probability <= 0.0f)
            return xm_candidates_draw_typical(c, logits, n, largest, &near, sum,
                                              d->random);
        xm_candidates_drop_others(c, logits, n, largest, steps, &near);
        most = s->min_p > 0.0f ? largest_weight_of_all(c, n) : most;
    }
    const int64_t least = xm_candidates_least(s, most);
    if (s->top_p >= 1.0f && least == 1 && s->xtc_probability <= 0.0f)
        return draw_of_all(c, sum, d->random);
    struct staying staying = {0.0f, 0.0f, 0};
    int64_t enough = INT64_MAX, rest = least;
    if (s->top_p < 1.0f) {
        enough = enough_for(s->top_p, sum);
        staying = guess_staying(c, n, sum - enough);
        /* All tokens of smaller weights together weigh less than top_p may leave out. */
        if (enough < sum && (sum - enough) / (int64_t)n + 1 > least)
            rest = (sum - enough) / (int64_t)n + 1;
    }
    int64_t kept = keep_staying(c, logits, n, rest, enough, &staying);
    if (s->xtc_probability > 0.0f)
        kept = exclude_staying(c, logits, n, &staying, kept, excluded_weight(s, d, kept));
    return draw_of_staying(c, logits, n, &staying, kept, d->random);
}

static int32_t
draw_by_surprise(struct xm_candidates *c, const float *logits, size_t n, float largest,
                 const struct xm_sampling *s, struct xm_draw *d)
{
    struct staying staying = {0.0f, 0.0f, 0};
    const int64_t sum = weigh_all(c, logits, n, largest, xm_weight_steps(s->temperature));
    const double wanted = ceil((double)sum * exp2(-d->most_surprise));
    const int64_t most = (int64_t)c->scale;
    const int64_t least = wanted < 1.0            ? 1
                          : wanted < (double)most ? (int64_t)wanted
                                                  : most;
    const int64_t kept = keep_staying(c, logits, n, least, INT64_MAX, &staying);
    const int32_t id = draw_of_staying(c, logits, n, &staying, kept, d->random);
    d->surprise = log2((double)kept / (double)weight_of(c, (uint32_t)id));
    return id;
}

int32_t
xm_candidates_draw(struct xm_candidates *c, const float *logits, size_t n, int32_t best,
                   const struct xm_sampling *s, struct xm_draw *draw)
{
    assert(best >= 0 && n <= c->vocab_size);
    if (s->mirostat == 2)
        return draw_by_surprise(c, logits, n, logits[best], s, draw);
    return s->top_k > 0 && (size_t)s->top_k < n
               ? draw_of_best(c, logits, n, logits[best], s, draw)
               : draw_of_row(c, logits, n, logits[best], s, draw);
}
