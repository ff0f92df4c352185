/* SPDX-License-Identifier: Apache-2.0
 *
 * The weight of a token in a random draw, a whole number in proportion to its probability:
 *
 *     weight = 2^bits * exp(-(largest - logit) / temperature), rounded down
 *
 * The largest logit has the weight 2^bits. Sums of whole numbers do not depend on the order of
 * their terms, so filters need not sort. `bits` is the largest number with which the weights of a
 * whole vocabulary sum to less than 2^62.
 *
 * The exponent is rounded to a multiple of 2^-20. Therefore a weight never rises where the logit
 * falls, and its relative error is below 2^-19 for a difference of at most 11 temperatures.
 */
#ifndef XM_PLUGIN_TEXT_TOKEN_WEIGHT_H
#define XM_PLUGIN_TEXT_TOKEN_WEIGHT_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_WEIGHT_FRACTION = 20, /* fractional bits of the exponent              */
    XM_WEIGHT_LEAST = 64     /* 2^-64 of the largest weight is rounded to zero */
};

/* `bits` for a vocabulary of this size. */
static inline int
xm_weight_bits(size_t vocab_size)
{
    int bits = 62;
    for (; vocab_size > 0; vocab_size >>= 1)
        bits--;
    return bits;
}

/* log2(e) / temperature in units of 2^-20: how far the exponent falls for a difference of 1. */
static inline float
xm_weight_steps(float temperature)
{
    const double log2_e = 1.4426950408889634;
    const double steps = ldexp(log2_e, XM_WEIGHT_FRACTION) / (double)temperature;
    return steps < (double)FLT_MAX ? (float)steps : FLT_MAX;
}

/* The negated exponent of 2, in units of 2^-20, of a logit that lies `difference` below the
 * largest; at most XM_WEIGHT_LEAST * 2^20, also for NaN. */
static inline float
xm_weight_exponent(float difference, float steps)
{
    const float most = (float)(XM_WEIGHT_LEAST << XM_WEIGHT_FRACTION);
    const float x = difference * steps;
    return x < most ? x : most;
}

/* 2^-x for x in units of 2^-20: the weight as a share of the largest weight, in [2^-64, 1]. */
static inline float
xm_weight_power(float x)
{
    const int32_t exponent = (int32_t)(x + 0.5f);
    const int32_t fraction = exponent & ((1 << XM_WEIGHT_FRACTION) - 1);
    const float g = -(float)fraction / (float)(1 << XM_WEIGHT_FRACTION); /* (-1, 0] */
    /* 2^g = 1 + g * (2^g - 1) / g; the quotient as a Chebyshev polynomial of degree 5, whose error
     * is below 2^-27. */
    float p = 0x1.e2025b670806dp-14f;
    p = p * g + 0x1.529848a1a40c4p-10f;
    p = p * g + 0x1.3a79c4237ac8fp-7f;
    p = p * g + 0x1.c6a652014310fp-5f;
    p = p * g + 0x1.ebfba83222810p-3f;
    p = p * g + 0x1.62e42fbe1fb9cp-1f;
    p = p * g + 1.0f;
    const uint32_t halved = (uint32_t)(127 - (exponent >> XM_WEIGHT_FRACTION)) << 23;
    float scale;
    memcpy(&scale, &halved, sizeof(scale));
    return p * scale;
}

/* Both steps at once. */
static inline float
xm_weight_share(float difference, float steps)
{
    return xm_weight_power(xm_weight_exponent(difference, steps));
}

#ifdef __cplusplus
}
#endif
#endif
