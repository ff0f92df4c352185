/* SPDX-License-Identifier: Apache-2.0
 *
 * Horizontal operations on 16 lanes; loads and stores of up to 16 elements.
 */
#include "types.h"

static inline float
sum16(float16 v)
{
    const float8 a = v.lo + v.hi;
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.lo + c.hi;
}

static inline float
max16(float16 v)
{
    const float8 a = fmax(v.lo, v.hi);
    const float4 b = fmax(a.lo, a.hi);
    const float2 c = fmax(b.lo, b.hi);
    return fmax(c.lo, c.hi);
}

/* Returns the sums of neighbouring lanes: 8 of a, then 8 of b. Four levels of this turn 16 vectors
 * into the vector of their 16 sums. */
static inline float16
sum_pairs(float16 a, float16 b)
{
    return (float16)(a.even, b.even) + (float16)(a.odd, b.odd);
}

/* Returns the sums of 16 vectors; 16 horizontal sums would take three times as long. */
static inline float16
sum_each(float16 v[16])
{
#pragma unroll
    for (uint n = 8; n; n /= 2)
#pragma unroll
        for (uint i = 0; i < n; i++)
            v[i] = sum_pairs(v[2 * i], v[2 * i + 1]);
    return v[0];
}

/* Loads, or stores, elements i ... i + n - 1 of p, at most 16; loaded lanes behind them are 0. */
#define MOVE_SOME(T)                                                                     \
    static inline float16 load_some_##T(__global const STORAGE(T) * p, ulong i, uint n)  \
    {                                                                                    \
        float v[16] = {0};                                                               \
        if (n == 16)                                                                     \
            return LOAD16(T, p, i);                                                      \
        for (uint j = 0; j < n; j++)                                                     \
            v[j] = LOAD(T, p, i + j);                                                    \
        return vload16(0, v);                                                            \
    }                                                                                    \
    static inline void store_some_##T(__global STORAGE(T) * p, ulong i, uint n,          \
                                      float16 lanes)                                     \
    {                                                                                    \
        float v[16];                                                                     \
        if (n == 16) {                                                                   \
            STORE16(T, p, i, lanes);                                                     \
            return;                                                                      \
        }                                                                                \
        vstore16(lanes, 0, v);                                                           \
        for (uint j = 0; j < n; j++)                                                     \
            STORE(T, p, i + j, v[j]);                                                    \
    }
MOVE_SOME(f16)
MOVE_SOME(f32)
#undef MOVE_SOME
#define LOAD_SOME(T, p, i, n)     PASTE(load_some_, T)(p, i, n)
#define STORE_SOME(T, p, i, n, v) PASTE(store_some_, T)(p, i, n, v)
