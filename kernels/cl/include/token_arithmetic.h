/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of choosing a token that must be bit-identical on host and devices, in C and OpenCL C.
 * Products and sums of floats are rounded one by one in both: nothing is contracted to an fma.
 */
#ifndef TOKEN_ARITHMETIC_H
#define TOKEN_ARITHMETIC_H

#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT OFF
#define U32 uint
#define U64 ulong
#else
#include <stdint.h>
#define U32 uint32_t
#define U64 uint64_t
#endif

/* Returns 2^g for g in (-1, 0], as 1 + g * ((2^g - 1) / g); the quotient is a Chebyshev polynomial
 * of degree 5 with an error below 2^-27. */
static inline float
two_to_the(float g)
{
    float p = 0x1.e2025b670806dp-14f;
    p = p * g + 0x1.529848a1a40c4p-10f;
    p = p * g + 0x1.3a79c4237ac8fp-7f;
    p = p * g + 0x1.c6a652014310fp-5f;
    p = p * g + 0x1.ebfba83222810p-3f;
    p = p * g + 0x1.62e42fbe1fb9cp-1f;
    return p * g + 1.0f;
}

/* Returns random number n of a seed, by SplitMix64. */
static inline U64
random_bits(U64 seed, U64 n)
{
    U64 z = seed + (n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Returns the sum that the weights of the best tokens must reach: top_p (in units of 2^-32) times
 * the sum of all weights, rounded up; at least 1, at most `sum`. */
static inline U64
enough_of(U64 sum, U64 top_p)
{
    const U64 low = (U32)sum * top_p;
    const U64 enough = (sum >> 32) * top_p + (low >> 32) + ((U32)low ? 1 : 0);
    return enough < 1 ? 1 : enough < sum ? enough : sum;
}

/* Returns the penalised logit of a token that is in the window at least once; `fresh` is how often
 * presence and frequency penalties count it. The result is at most the largest finite float,
 * because +infinity would mean that the model's logits are invalid. */
static inline float
penalised(float logit, U32 fresh, float repetition, float inverse_repetition,
          float frequency, float presence)
{
    const float most = 0x1.fffffep127f;
    float x = logit > 0.0f ? logit * inverse_repetition : logit * repetition;
    x = fresh ? x - (float)fresh * frequency - presence : x;
    return x > most ? most : x;
}

#undef U32
#undef U64
#endif
