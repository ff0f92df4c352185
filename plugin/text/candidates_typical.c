/* SPDX-License-Identifier: Apache-2.0
 *
 * typical_p: the tokens whose logits are the nearest to the mean by weight. Of a few candidates
 * they are found by keys of their own; of all tokens by a guess of how far the last of them is,
 * from some tokens, and the keys of those around it.
 */
#include <math.h>

#include "plugin/text/candidates_parts.h"

bool
xm_candidates_is_typical(const struct xm_sampling *s)
{
    return s->typical_p > 0.0f && s->typical_p < 1.0f;
}

/* How far the logit is from the mean, both as differences to the largest. */
static float
distance(float largest, float logit, float mean)
{
    return fabsf(difference(largest, logit) - mean);
}

/* Nearer ones are larger. */
static uint64_t
typical_key(float distance, uint32_t id)
{
    return (uint64_t)~bits_of(distance) << 32 | (uint32_t)~id;
}

/* Of the n candidates; how many stay, and what they weigh. */
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

/* Sums over tokens, in lanes. */
struct moments {
    double weights[LANES];
    double products[LANES]; /* of weights and differences to the largest logit */
};

/* Adds those of a whole block. */
XM_FOR_AVX2_TOO static void
add_moments(struct moments *m, const float *shares, const float *logits, float largest,
            float least)
{
    const float farthest = 1e30f; /* so that sums of few are finite */
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

/* The mean by weight of the differences of all tokens to the largest logit. */
static float
mean_difference(const struct xm_candidates *c, const float *logits, size_t n,
                float largest)
{
    const float least = 1.0f / c->scale; /* of a token that weighs something */
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

/* How far the logits of a block are from the mean. */
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

/* A token that does not stay has the least share, which weighs nothing. */
static const float no_share = 0x1p-64f;

/* Bins of distances from 2^-8 to 2^8, by their first bits. */
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

/* The least distance of a bin but for the first. */
static float
distance_of_bin(size_t bin)
{
    const uint32_t bits = (uint32_t)(bin + FIRST_DISTANCE) << DISTANCE_SHIFT;
    float d;
    memcpy(&d, &bits, sizeof(d));
    return d;
}

/* Tokens of at least this part of all weight are counted one by one. */
enum { HEAVY = 512 };

/* Adds the heavy tokens to the bins; what they weigh. They are in few blocks. */
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

/* Where the last of the staying most likely is: by the heavy tokens and some of the others, whose
 * sums say those of all but for a few standard deviations. What lies below a distance follows from
 * the tokens on either side of it, because the sum of all is known: those say it that vary less.
 * False: they do not. */
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

/* The share where d < low, else 0, for d and low >= 0: without a branch, which would be taken at
 * random. */
static float
share_below(float share, float d, float low)
{
    const uint32_t is_below = (bits_of(d) - bits_of(low)) >> 31;
    const uint32_t bits = bits_of(share) & (0u - is_below);
    memcpy(&share, &bits, sizeof(share));
    return share;
}

/* What a token nearer than `high` weighs at least: its logit is less than mean + high below the
 * largest. Blocks that weigh less have no such token. The share is taken a little smaller, because
 * differences have been rounded. */
static int64_t
least_of_near(const struct xm_candidates *c, const struct xm_nearness *near, float steps)
{
    const float share = xm_weight_share(near->mean + near->high, steps);
    const int64_t weight = (int64_t)(0.99f * share * c->scale);
    return weight > 1 ? weight : 1;
}

/* What tokens nearer than `low` weigh together, and block for block in `kept`; gathers the keys of
 * those between `low` and `high`, in the order of ids. */
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

/* The tokens from `high` on weigh nothing from now on. */
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

/* The likeliest token lies as far from the mean as the mean from it: those that are farther have
 * little weight. */
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

/* All other tokens weigh nothing from now on. */
void
xm_candidates_drop_others(struct xm_candidates *c, const float *logits, size_t n,
                          float largest, float steps, const struct xm_nearness *near)
{
    drop_far(c, logits, n, largest, steps, near);
    for (size_t i = 0; i < near->n_keys; i++) {
        const uint32_t id = id_of(c->keys[i]);
        const bool stays = c->keys[i] >= near->threshold; /* at random: no branch */
        c->sums[id / BLOCK] -= stays ? 0 : weight_of(c, id);
        c->shares[id] = stays ? c->shares[id] : no_share;
    }
}

/* Without that, of the typical tokens, which weigh `sum` together. */
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
