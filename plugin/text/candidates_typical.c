/* SPDX-License-Identifier: Apache-2.0
 *
 * typical_p keeps the tokens whose logits are nearest to the mean logit, averaged by weight. Of a
 * few candidates they are found by a threshold on keys made of distances. Of all tokens, a sample
 * guesses the distance of the farthest token that is kept, and only tokens near that distance get
 * keys.
 */
#include <math.h>

#include "plugin/text/candidates_parts.h"

bool
xm_candidates_is_typical(const struct xm_sampling *s)
{
    return s->typical_p > 0.0f && s->typical_p < 1.0f;
}

/* Returns the distance of a logit from the mean. `mean` is given as its difference to the largest
 * logit. */
static float
distance(float largest, float logit, float mean)
{
    return fabsf(difference(largest, logit) - mean);
}

/* Returns a key that is larger for nearer tokens and, of equally near ones, for lower ids. */
static uint64_t
typical_key(float distance, uint32_t id)
{
    return (uint64_t)~bits_of(distance) << 32 | (uint32_t)~id;
}

size_t
xm_candidates_keep_typical(struct xm_candidates *c, const float *logits, size_t n,
                           float largest, float typical_p, int64_t *sum)
{
    double moment = 0.0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = id_of(c->keys[i]);
        const int64_t weight = weight_of(c, id);
        if (weight > 0)
            moment += (double)weight * (double)difference(largest, logits[id]);
    }
    const float mean = (float)(moment / (double)*sum);
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = id_of(c->keys[i]);
        c->keys[i] = typical_key(distance(largest, logits[id], mean), id);
    }
    const uint64_t enough = (uint64_t)enough_for(typical_p, *sum);
    n = xm_candidates_keep_best(c, n, xm_candidates_threshold(c, n, enough, true));
    *sum = xm_candidates_sum(c, n);
    for (size_t i = 0; i < n; i++)
        c->keys[i] = key_of(logits[id_of(c->keys[i])], id_of(c->keys[i]));
    return n;
}

/* Sums over tokens, one per vector lane. */
struct moments {
    double weights[LANES];
    double products[LANES]; /* weight times difference to the largest logit */
};

/* Adds the sums of a whole block. */
XM_FOR_AVX2_TOO static void
add_moments(struct moments *m, const float *shares, const float *logits, float largest,
            float least)
{
    const float farthest = 1e30f; /* bounds a difference, so that the sums stay finite */
    float weights[BLOCK], products[BLOCK];
    for (size_t i = 0; i < BLOCK; i++) {
        const float gap = largest - logits[i];
        weights[i] = shares[i] >= least ? shares[i] : 0.0f;
        products[i] = weights[i] * (gap < farthest ? gap : farthest);
    }
    for (size_t i = LANES; i < BLOCK; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            weights[k] += weights[i + k];
            products[k] += products[i + k];
        }
    for (size_t k = 0; k < LANES; k++)
        m->weights[k] += (double)weights[k];
    for (size_t k = 0; k < LANES; k++)
        m->products[k] += (double)products[k];
}

/* Returns the mean, by weight, of the differences of all logits to the largest. */
static float
mean_difference(const struct xm_candidates *c, const float *logits, size_t n,
                float largest)
{
    const float least = 1.0f / c->scale; /* smallest share whose weight is not 0 */
    struct moments m = {.weights = {0.0}};
    double weight = 0.0, product = 0.0;
    float rest[BLOCK];
    for (size_t first = 0; first < n && largest < INFINITY; first += BLOCK)
        if (c->sums[first / BLOCK] > 0)
            add_moments(&m, c->shares + first, whole_block(logits, first, n, rest),
                        largest, least);
    for (size_t k = 0; k < LANES; k++) {
        weight += m.weights[k];
        product += m.products[k];
    }
    return weight > 0.0 ? (float)(product / weight) : 0.0f;
}

/* Computes the distances d[] of a block's logits from the mean. */
static void
find_distances(const float *logits, float largest, float mean, float *d)
{
    if (largest < INFINITY)
        for (size_t i = 0; i < BLOCK; i++)
            d[i] = fabsf(largest - logits[i] - mean);
    else
        for (size_t i = 0; i < BLOCK; i++)
            d[i] = distance(largest, logits[i], mean);
}

/* The share of a dropped token: the smallest share, whose weight is 0. */
static const float no_share = 0x1p-64f;

/* Bins of distances from 2^-8 to 2^8, by the first bits of the float. */
enum {
    DISTANCE_SHIFT = 27 - DIGIT,
    FIRST_DISTANCE = (127 - 8) << (FLT_MANT_DIG - 1 - DISTANCE_SHIFT),
};

static size_t
bin_of_distance(float d)
{
    const uint32_t bits = bits_of(d) >> DISTANCE_SHIFT;
    return bits < FIRST_DISTANCE          ? 0
           : bits - FIRST_DISTANCE < BINS ? bits - FIRST_DISTANCE
                                          : BINS - 1;
}

/* Returns the smallest distance of a bin. (The first bin also holds all smaller distances.) */
static float
distance_of_bin(size_t bin)
{
    const uint32_t bits = (uint32_t)(bin + FIRST_DISTANCE) << DISTANCE_SHIFT;
    float d;
    memcpy(&d, &bits, sizeof(d));
    return d;
}

/* A token with at least 1 / HEAVY of the whole weight is heavy: it is counted exactly, not
 * sampled. */
enum { HEAVY = 512 };

/* Adds the weights of the heavy tokens to the bins. Returns their sum. Few blocks have such
 * tokens. */
static int64_t
count_heavy(struct xm_candidates *c, const float *logits, size_t n, float largest,
            float mean, int64_t heavy)
{
    int64_t sum = 0;
    for (size_t first = 0; first < n; first += BLOCK) {
        if (c->sums[first / BLOCK] < heavy)
            continue;
        for (size_t i = first; i < end_of_block(first, n); i++) {
            const int64_t weight = weight_of(c, (uint32_t)i);
            if (weight < heavy)
                continue;
            c->bins[bin_of_distance(distance(largest, logits[i], mean))] +=
                (uint64_t)weight;
            sum += weight;
        }
    }
    return sum;
}

/* Guesses between which distances the farthest token that is kept most likely is, from the heavy
 * tokens and a sample of the others. The weight below a distance can be estimated by the sampled
 * tokens below it or, because the sum of all weights is known, by those above it: the side with the
 * smaller variance is used. False: the sample is not representative, because its estimate of the
 * sum of all weights is off by more than 20 %. */
static bool
guess_nearness(struct xm_candidates *c, const float *logits, size_t n, float largest,
               int64_t whole, int64_t enough, struct xm_nearness *near)
{
    const int64_t heavy = whole / HEAVY + 1;
    double below = 0.0, variance = 0.0, whole_variance = 0.0;
    memset(c->bins, 0, sizeof(c->bins));
    memset(c->squares, 0, sizeof(c->squares));
    int64_t seen = count_heavy(c, logits, n, largest, near->mean, heavy);
    for (size_t i = 0; i < n; i += SAMPLED) {
        const int64_t weight = weight_of(c, (uint32_t)i);
        const size_t bin = bin_of_distance(distance(largest, logits[i], near->mean));
        if (weight >= heavy)
            continue;
        seen += weight * SAMPLED;
        c->bins[bin] += (uint64_t)weight * SAMPLED;
        c->squares[bin] += (double)weight * (double)weight * SAMPLED * SAMPLED;
        whole_variance += (double)weight * (double)weight * SAMPLED * SAMPLED;
    }
    if (fabs((double)seen - (double)whole) > 0.2 * (double)whole)
        return false;
    near->low = 0.0f;
    near->high = INFINITY;
    for (size_t bin = 0; bin + 1 < BINS && near->high == INFINITY; bin++) {
        below += (double)c->bins[bin];
        variance += c->squares[bin];
        const bool by_those_below = variance <= whole_variance - variance;
        const double sum = by_those_below ? below : below + (double)(whole - seen);
        const double varies =
            3.0 * sqrt(by_those_below ? variance : fmax(whole_variance - variance, 0.0));
        if (sum + varies <= (double)enough)
            near->low = distance_of_bin(bin + 1);
        if (sum - varies > (double)enough)
            near->high = distance_of_bin(bin + 1);
    }
    return true;
}

/* Returns `share` if d < low, else 0, for d and low >= 0. It has no branch, because the branch
 * predictor would fail about half the time. */
static float
share_below(float share, float d, float low)
{
    const uint32_t is_below = (bits_of(d) - bits_of(low)) >> 31;
    const uint32_t bits = bits_of(share) & (0u - is_below);
    memcpy(&share, &bits, sizeof(share));
    return share;
}

/* Returns the smallest weight of a token nearer than near->high: its logit is at most mean + high
 * below the largest. A block whose weights sum to less has no such token. The share is reduced by 1
 * %, because differences were rounded. */
static int64_t
least_of_near(const struct xm_candidates *c, const struct xm_nearness *near, float steps)
{
    const float share = xm_weight_share(near->mean + near->high, steps);
    const int64_t weight = (int64_t)(0.99f * share * c->scale);
    return weight > 1 ? weight : 1;
}

/* Returns the sum of the weights of the tokens nearer than near->low, and stores its parts by block
 * in `kept`. Gathers the keys of the tokens between near->low and near->high, in the order of
 * ids. */
XM_FOR_AVX2_TOO static int64_t
part_by_distance(struct xm_candidates *c, const float *logits, size_t vocab_size,
                 float largest, float steps, struct xm_nearness *near)
{
    const float low = near->low, high = near->high, scale = c->scale;
    const int64_t least = least_of_near(c, near, steps);
    const uint32_t low_bits = bits_of(low), span = bits_of(high) - low_bits;
    size_t n_keys = 0;
    int64_t inner = 0;
    for (size_t first = 0; first < vocab_size; first += BLOCK) {
        float d[BLOCK], kept[BLOCK], rest[BLOCK];
        const float *shares = c->shares + first;
        c->kept[first / BLOCK] = 0;
        if (c->sums[first / BLOCK] < least)
            continue;
        find_distances(whole_block(logits, first, vocab_size, rest), largest, near->mean,
                       d);
        for (size_t i = 0; i < BLOCK; i++)
            kept[i] = share_below(shares[i], d[i], low);
        c->kept[first / BLOCK] = sum_weights(kept, scale);
        inner += c->kept[first / BLOCK];
        uint64_t between = find_between(d, low_bits, span);
        for (; between > 0; between &= between - 1) {
            const int i = xm_lowest_bit(between);
            c->keys[n_keys++] = typical_key(d[i], (uint32_t)first + (uint32_t)i);
        }
    }
    near->n_keys = n_keys;
    return inner;
}

/* Sets the weights of the tokens at distance near->high or more to 0. */
XM_FOR_AVX2_TOO static void
drop_far(struct xm_candidates *c, const float *logits, size_t vocab_size, float largest,
         float steps, const struct xm_nearness *near)
{
    const float high = near->high, scale = c->scale;
    const int64_t least = least_of_near(c, near, steps);
    for (size_t first = 0; first < vocab_size; first += BLOCK) {
        float d[BLOCK], rest[BLOCK], *shares = c->shares + first;
        if (c->sums[first / BLOCK] < least) {
            for (size_t i = 0; i < BLOCK; i++)
                shares[i] = no_share;
            c->sums[first / BLOCK] = 0;
            continue;
        }
        find_distances(whole_block(logits, first, vocab_size, rest), largest, near->mean,
                       d);
        for (size_t i = 0; i < BLOCK; i++)
            shares[i] = d[i] < high ? shares[i] : no_share;
        c->sums[first / BLOCK] = sum_weights(shares, scale);
    }
}

/* If the guess fails, the second try takes all tokens up to the distance of the most likely token
 * from the mean: tokens farther away lie below the mean and have little weight. The third try takes
 * all tokens. */
int64_t
xm_candidates_find_typical(struct xm_candidates *c, const float *logits, size_t n,
                           float largest, float steps, float typical_p, int64_t sum,
                           struct xm_nearness *near)
{
    const int64_t enough = enough_for(typical_p, sum);
    int64_t kept = 0;
    *near = (struct xm_nearness){.mean = mean_difference(c, logits, n, largest)};
    const bool is_guessed = guess_nearness(c, logits, n, largest, sum, enough, near);
    for (int tries = is_guessed ? 0 : 1; tries < 3; tries++) {
        if (tries > 0)
            near->low = 0.0f;
        if (tries > 0)
            near->high = tries == 1 ? nextafterf(near->mean, INFINITY) : INFINITY;
        kept = part_by_distance(c, logits, n, largest, steps, near);
        if (kept < enough && kept + xm_candidates_sum(c, near->n_keys) >= enough)
            break;
    }
    near->threshold =
        xm_candidates_threshold(c, near->n_keys, (uint64_t)(enough - kept), true);
    return kept + xm_candidates_keep(c, near->n_keys, near->threshold);
}

void
xm_candidates_drop_others(struct xm_candidates *c, const float *logits, size_t n,
                          float largest, float steps, const struct xm_nearness *near)
{
    drop_far(c, logits, n, largest, steps, near);
    for (size_t i = 0; i < near->n_keys; i++) {
        const uint32_t id = id_of(c->keys[i]);
        const bool stays = c->keys[i] >= near->threshold; /* unpredictable: no branch */
        c->sums[id / BLOCK] -= stays ? 0 : weight_of(c, id);
        c->shares[id] = stays ? c->shares[id] : no_share;
    }
}

int32_t
xm_candidates_draw_typical(const struct xm_candidates *c, const float *logits, size_t n,
                           float largest, const struct xm_nearness *near, int64_t sum,
                           uint64_t random)
{
    int64_t left = xm_weight_point(sum, random);
    size_t i = 0;
    for (; left >= c->kept[i / BLOCK]; i += BLOCK)
        left -= c->kept[i / BLOCK];
    for (; i + 1 < n; i++) {
        const float d = distance(largest, logits[i], near->mean);
        const bool is_left =
            d < near->low ||
            (d < near->high && typical_key(d, (uint32_t)i) >= near->threshold);
        if (is_left && left < weight_of(c, (uint32_t)i))
            break;
        left -= is_left ? weight_of(c, (uint32_t)i) : 0;
    }
    return (int32_t)i;
}
