/* SPDX-License-Identifier: Apache-2.0
 *
 * The weight of a token in a random draw: an integer proportional to its probability.
 *
 *     weight = 2^bits * exp(-(largest - logit) / temperature), rounded down
 *
 * The largest logit has the weight 2^bits. Sums of integers do not depend on the order of their
 * terms, so filters need not sort. `bits` is the largest number for which the weights of a whole
 * vocabulary always sum to less than 2^62.
 *
 * The draw and top_p compute with such sums in integers only, so every device gets the same result
 * (kernels/cl/include/choose.h). The arithmetic that host and device share is in
 * kernels/cl/include/token_arithmetic.h.
 *
 * The exponent is rounded to a multiple of 2^-20. Therefore the weight is a monotonic function of
 * the logit, and its relative error is below 2^-19 for logits at most 11 temperatures below the
 * largest.
 */
#ifndef XM_PLUGIN_TEXT_TOKEN_WEIGHT_H
#define XM_PLUGIN_TEXT_TOKEN_WEIGHT_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cl/include/token_arithmetic.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_WEIGHT_FRACTION = 20, /* fractional bits of the exponent */
    XM_WEIGHT_LEAST = 64     /* shares are at least 2^-64, whose weight is 0 */
};

/* Returns `bits` for a vocabulary of this size. */
static inline int
xm_weight_bits(size_t vocab_size)
{
    int bits = 62;
    for (; vocab_size > 0; vocab_size >>= 1)
        bits--;
    return bits;
}

/* Returns log2(e) / temperature in units of 2^-20: the change of the exponent for a logit
 * difference of 1. */
static inline float
xm_weight_steps(float temperature)
{
    const double log2_e = 1.4426950408889634;
    const double steps = ldexp(log2_e, XM_WEIGHT_FRACTION) / (double)temperature;
    return steps < (double)FLT_MAX ? (float)steps : FLT_MAX;
}

/* Returns the negated exponent of 2, in units of 2^-20, for a logit that lies `difference` below
 * the largest; at most XM_WEIGHT_LEAST * 2^20, also for NaN. */
static inline float
xm_weight_exponent(float difference, float steps)
{
    const float most = (float)(XM_WEIGHT_LEAST << XM_WEIGHT_FRACTION);
    const float x = difference * steps;
    return x < most ? x : most;
}

/* Returns 2^-x for x in units of 2^-20: the weight divided by the largest weight, in [2^-64, 1]. */
static inline float
xm_weight_power(float x)
{
    const int32_t exponent = (int32_t)(x + 0.5f);
    const int32_t fraction = exponent & ((1 << XM_WEIGHT_FRACTION) - 1);
    const float g = -(float)fraction / (float)(1 << XM_WEIGHT_FRACTION); /* (-1, 0] */
    const float p = two_to_the(g);
    const uint32_t halved = (uint32_t)(127 - (exponent >> XM_WEIGHT_FRACTION)) << 23;
    float scale;
    memcpy(&scale, &halved, sizeof(scale));
    return p * scale;
}

/* Returns the upper 64 bits of the product. */
static inline uint64_t
xm_multiply_high(uint64_t a, uint64_t b)
{
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32;
    const uint64_t b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t low = a_low * b_low, mid = a_high * b_low + (low >> 32);
    return a_high * b_high + (mid >> 32) + ((a_low * b_high + (uint32_t)mid) >> 32);
}

/* Maps 64 random bits to a number in [0, sum), sum > 0. */
static inline int64_t
xm_weight_point(int64_t sum, uint64_t random)
{
    return (int64_t)xm_multiply_high(random, (uint64_t)sum);
}

/* Returns top_p in units of 2^-32. */
static inline uint64_t
xm_weight_top_p(float top_p)
{
    return (uint64_t)ldexp((double)top_p, 32);
}

/* Returns the weight, divided by the largest, of a logit `difference` below the largest. */
static inline float
xm_weight_share(float difference, float steps)
{
    return xm_weight_power(xm_weight_exponent(difference, steps));
}

#ifdef __cplusplus
}
#endif
#endif
