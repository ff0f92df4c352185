/* SPDX-License-Identifier: Apache-2.0
 *
 * Horizontal operations on 16 lanes.
 */
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

/* Sums of neighbouring lanes: 8 of a, then 8 of b. Four levels of it turn 16 vectors into the
 * vector of their 16 sums. */
static inline float16
sum_pairs(float16 a, float16 b)
{
    return (float16)(a.even, b.even) + (float16)(a.odd, b.odd);
}
