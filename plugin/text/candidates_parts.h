/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of candidates.h: keys, weights and blocks of tokens, for the filters that are in files of
 * their own.
 */
#ifndef XM_PLUGIN_TEXT_CANDIDATES_PARTS_H
#define XM_PLUGIN_TEXT_CANDIDATES_PARTS_H

#include <stdbool.h>

#include "plugin/text/candidates.h"
#include "plugin/text/token_weight.h"
#include "runtime/util/compiler.h"

enum {
    LANES = 16, /* logits that are compared at once         */
    BLOCK = 64, /* tokens whose weights have a common sum   */
    DIGIT = 11, /* bits of a key that a histogram tells     */
    BINS = 1 << DIGIT,
    FEW = 4096,      /* keys that top_k gathers at least, before it drops some */
    SAMPLED = 32,    /* of so many tokens one says where the k-th may be       */
    SHARE_DIGIT = 4, /* bits of a weight behind its first that a bin tells      */
};

struct xm_candidates {
    size_t vocab_size;
    float *shares;   /* owned; of the largest weight, by id; whole blocks            */
    int64_t *sums;   /* owned; of the weights of each block of tokens                */
    int64_t *kept;   /* owned; of those of the ones that stay                        */
    uint64_t *keys;  /* owned; [vocab_size] of the candidates, in the order of ids   */
    uint64_t *spare; /* owned; [vocab_size] for histograms                           */
    uint64_t bins[BINS];
    double squares[BINS];
    float scale; /* 2^bits, the largest weight */
};

static inline uint64_t
key_of(float logit, uint32_t id)
{
    const uint32_t sign = 1u << 31;
    uint32_t bits;
    logit += 0.0f; /* of the two zeros none is larger */
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

/* What a block of tokens weighs. Compilers make vector code of conversions to 32
 * bits, not of those to 64: up to 2^47 a weight is the sum of two parts that are converted alone,
 * exactly, because a float has only 24 digits. */
static inline int64_t
sum_weights(const float *shares, float scale)
{
    const float unit = 0x1p24f;
    int64_t sum = 0;
    int32_t high = 0, low = 0;
    if (scale > 0x1p47f) { /* few tokens */
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

/* They rise as shares do, which are above 0. */
static inline uint32_t
bits_of(float share)
{
    uint32_t bits;
    memcpy(&bits, &share, sizeof(bits));
    return bits;
}

/* Which tokens of a block have bits from `low` on and below `low + span`, a bit each. Without
 * a branch for each: compilers make vector code of the comparisons, and eight bytes that are 0 or 1
 * become eight bits by a product (of little-endian words). */
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
    return logit == largest ? 0.0f : largest - logit; /* infinity - infinity is NaN */
}

/* The logits of a block: those that are missing in the last one are -infinity, in `rest`. Loops of
 * a known length need no code for what is left over. */
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

/* What the weights of the best tokens have to reach, of this sum. */
static inline int64_t
enough_for(float p, int64_t sum)
{
    return (int64_t)enough_of((uint64_t)sum, xm_weight_top_p(p));
}

/* The smallest key of the fewest best of the first n whose weights, or numbers, reach `enough`; of
 * all, where none do. */
uint64_t xm_candidates_threshold(struct xm_candidates *c, size_t n, uint64_t enough,
                                 bool by_weight);
/* Keeps the candidates from the threshold on; how many these are. */
size_t xm_candidates_keep_best(struct xm_candidates *c, size_t n, uint64_t threshold);
/* What the candidates weigh. */
int64_t xm_candidates_sum(const struct xm_candidates *c, size_t n);
/* Adds the candidates from the threshold on to what is kept; their sum. */
int64_t xm_candidates_keep(struct xm_candidates *c, size_t n, uint64_t threshold);

/* ---- typical_p (candidates_typical.c) -------------------------------------------------------- */

/* Of the n candidates; how many stay, and what they weigh. */
size_t xm_candidates_keep_typical(struct xm_candidates *c, const float *logits, size_t n,
                                  float largest, float typical_p, int64_t *sum);

/* Tokens nearer than `low` to the mean stay, those from `high` on do not; of the others, whose keys
 * are the first n_keys, those from `threshold` on do. */
struct xm_nearness {
    float mean, low, high;
    uint64_t threshold;
    size_t n_keys;
};

/* Which of all tokens typical_p leaves; what they weigh, and block for block in `kept`. `steps`:
 * what the tokens were weighed with. */
int64_t xm_candidates_find_typical(struct xm_candidates *c, const float *logits, size_t n,
                                   float largest, float steps, float typical_p,
                                   int64_t sum, struct xm_nearness *near);
/* All other tokens weigh nothing from now on. */
void xm_candidates_drop_others(struct xm_candidates *c, const float *logits, size_t n,
                               float largest, float steps,
                               const struct xm_nearness *near);
/* Without that, of the typical tokens, which weigh `sum` together. */
int32_t xm_candidates_draw_typical(const struct xm_candidates *c, const float *logits,
                                   size_t n, float largest,
                                   const struct xm_nearness *near, int64_t sum,
                                   uint64_t random);

#endif
