/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to candidates*.c: keys, weights and blocks of tokens, shared by the filters.
 */
#ifndef XM_PLUGIN_TEXT_CANDIDATES_PARTS_H
#define XM_PLUGIN_TEXT_CANDIDATES_PARTS_H

#include <stdbool.h>

#include "plugin/text/candidates.h"
#include "plugin/text/token_weight.h"
#include "runtime/util/compiler.h"

enum {
    LANES = 16, /* logits compared at once (vector lanes) */
    BLOCK = 64, /* tokens whose weights are summed as one entry of `sums` */
    DIGIT = 11, /* bits of a key that select a histogram's bin */
    BINS = 1 << DIGIT,
    FEW = 4096,      /* keys that top_k gathers before it first drops some */
    SAMPLED = 32,    /* one of SAMPLED tokens is looked at to guess a threshold */
    SHARE_DIGIT = 4, /* bits of a share's mantissa that select a bin */
};

struct xm_candidates {
    size_t vocab_size;
    float *shares;   /* owned; weight / largest weight, by id; whole blocks */
    int64_t *sums;   /* owned; the sum of the weights of each block */
    int64_t *kept;   /* owned; by block, the sum of the kept tokens' weights */
    uint64_t *keys;  /* owned; [vocab_size], candidates' keys in the order of ids */
    uint64_t *spare; /* owned; [vocab_size], scratch of xm_candidates_threshold */
    uint64_t bins[BINS];
    double squares[BINS];
    float scale; /* the largest weight, 2^bits */
};

static inline uint64_t
key_of(float logit, uint32_t id)
{
    const uint32_t sign = 1u << 31;
    uint32_t bits;
    logit += 0.0f; /* makes -0 equal to +0 */
    memcpy(&bits, &logit, sizeof(bits));
    bits = bits & sign ? ~bits : bits | sign;
    return (uint64_t)bits << 32 | (uint32_t)~id;
}

static inline uint32_t
id_of(uint64_t key)
{
    return (uint32_t)~key;
}

static inline int64_t
weight_of(const struct xm_candidates *c, uint32_t id)
{
    return (int64_t)(c->shares[id] * c->scale);
}

/* Returns the sum of the weights of a block of tokens. Compilers vectorise conversions to 32 bits
 * but not to 64 bits. Therefore a weight up to 2^47 is split into two parts that are converted
 * separately; this is exact, because a float has 24 bits of mantissa. */
static inline int64_t
sum_weights(const float *shares, float scale)
{
    const float unit = 0x1p24f;
    int64_t sum = 0;
    int32_t high = 0, low = 0;
    if (scale > 0x1p47f) { /* only for small vocabularies */
        for (size_t i = 0; i < BLOCK; i++)
            sum += (int64_t)(shares[i] * scale);
        return sum;
    }
    for (size_t i = 0; i < BLOCK; i++) {
        const float weight = shares[i] * scale;
        const int32_t units = (int32_t)(weight * (1.0f / unit));
        high += units;
        low += (int32_t)(weight - (float)units * unit);
    }
    return (int64_t)high * (1 << 24) + low;
}

/* Returns the bits of a positive float as an integer, which orders as the float does. */
static inline uint32_t
bits_of(float share)
{
    uint32_t bits;
    memcpy(&bits, &share, sizeof(bits));
    return bits;
}

/* Returns a mask: bit i is set if bits_of(x[i]) is in [low, low + span). There is no branch, so
 * that compilers vectorise the comparisons; the product gathers eight bytes that are 0 or 1 into
 * eight bits (little endian). */
static inline uint64_t
find_between(const float *x, uint32_t low, uint32_t span)
{
    const uint64_t gather = 0x0102040810204080u;
    uint8_t found[BLOCK];
    uint64_t bits = 0, eight;
    for (size_t i = 0; i < BLOCK; i++)
        found[i] = bits_of(x[i]) - low < span;
    for (size_t i = 0; i < BLOCK; i += 8) {
        memcpy(&eight, found + i, sizeof(eight));
        bits |= (eight * gather >> 56) << i;
    }
    return bits;
}

static inline float
difference(float largest, float logit)
{
    /* infinity - infinity would be NaN */
    return logit == largest ? 0.0f : largest - logit;
}

/* Returns the BLOCK logits from `first` on. An incomplete last block is copied to `rest` and padded
 * with -infinity, so that loops have a fixed length. */
static inline const float *
whole_block(const float *logits, size_t first, size_t vocab_size, float rest[BLOCK])
{
    if (vocab_size - first >= BLOCK)
        return logits + first;
    for (size_t i = 0; i < BLOCK; i++)
        rest[i] = first + i < vocab_size ? logits[first + i] : -INFINITY;
    return rest;
}

static inline size_t
end_of_block(size_t first, size_t vocab_size)
{
    return vocab_size - first < BLOCK ? vocab_size : first + BLOCK;
}

/* Returns the weight that the best tokens must reach: the part p of `sum`. */
static inline int64_t
enough_for(float p, int64_t sum)
{
    return (int64_t)enough_of((uint64_t)sum, xm_weight_top_p(p));
}

/* Returns the threshold for the best candidates: the smallest key of the fewest best of the first n
 * candidates whose weights (or, without by_weight, whose number) reach `enough`. If all n do not
 * reach it, returns the smallest key. */
uint64_t xm_candidates_threshold(struct xm_candidates *c, size_t n, uint64_t enough,
                                 bool by_weight);
/* Drops the candidates whose key is below `threshold`. Returns the number of those left. */
size_t xm_candidates_keep_best(struct xm_candidates *c, size_t n, uint64_t threshold);
/* Returns the sum of the weights of the first n candidates. */
int64_t xm_candidates_sum(const struct xm_candidates *c, size_t n);
/* Adds the weights of the candidates whose key is at least `threshold` to `kept`. Returns the sum
 * of these weights. */
int64_t xm_candidates_keep(struct xm_candidates *c, size_t n, uint64_t threshold);

/* ---- typical_p (candidates_typical.c) -------------------------------------------------------- */

/* Applies typical_p to the n candidates. Returns the number of those left; *sum is the sum of their
 * weights. */
size_t xm_candidates_keep_typical(struct xm_candidates *c, const float *logits, size_t n,
                                  float largest, float typical_p, int64_t *sum);

/* The tokens that typical_p keeps, by the distance of a token's logit from the mean logit: below
 * `low` it is kept, from `high` on it is dropped. The keys of the tokens between are the first
 * n_keys of `keys`; those of at least `threshold` are kept. `mean` is relative to the largest
 * logit. */
struct xm_nearness {
    float mean, low, high;
    uint64_t threshold;
    size_t n_keys;
};

/* Finds the tokens that typical_p keeps, of all n. Returns the sum of their weights, and stores its
 * parts by block in `kept`. `steps` is the factor with which the weights were made
 * (xm_weight_steps). */
int64_t xm_candidates_find_typical(struct xm_candidates *c, const float *logits, size_t n,
                                   float largest, float steps, float typical_p,
                                   int64_t sum, struct xm_nearness *near);
/* Sets the weights of all tokens that *near does not keep to 0. */
void xm_candidates_drop_others(struct xm_candidates *c, const float *logits, size_t n,
                               float largest, float steps,
                               const struct xm_nearness *near);
/* Draws one of the tokens that *near keeps, whose weights sum to `sum`, without a call of
 * xm_candidates_drop_others before. */
int32_t xm_candidates_draw_typical(const struct xm_candidates *c, const float *logits,
                                   size_t n, float largest,
                                   const struct xm_nearness *near, int64_t sum,
                                   uint64_t random);

#endif
