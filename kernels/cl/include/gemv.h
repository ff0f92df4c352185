/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of weights times one activation row, 16 lanes wide:
 *
 *     sum_k w[n][k] x[k] = sum_g scale[g] (sum_{k in g} q[k] x[k] - zp[g] sum_{k in g} x[k])
 *
 * x is in planes (planes.h), each plane scaled down by where its bits lie in the word, so that a
 * mask and a conversion are all that a weight costs: (word & 0xf0) is 16 q. xs has the sums of
 * the groups. The zero points of a row are then one term of a few operations.
 */
#include "planes.h"

/* What plane j of x is multiplied with; the topmost plane is shifted down instead. */
static inline float
plane_factor(uint j)
{
    return j + 1 < PLANES ? ldexp(1.0f, -(int)(j * (32 / PLANES))) : 1.0f;
}

#if GROUP
#define TERM(mask, j) convert_float16(as_int16(w &mask)) * vload16(j, x)

/* sum over the planes of one block, lane by lane */
static inline float16
block_dot(uint16 w, __global const float *x)
{
#if PLANES == 8
    float16 a = TERM(0xfu, 0), b = TERM(0xf0u, 1);
    a += TERM(0xf00u, 2);
    b += TERM(0xf000u, 3);
    a += TERM(0xf0000u, 4);
    b += TERM(0xf00000u, 5);
    a += TERM(0xf000000u, 6);
    b += convert_float16(as_int16(w >> 28u)) * vload16(7, x);
#else
    float16 a = TERM(0xffu, 0), b = TERM(0xff00u, 1);
    a += TERM(0xff0000u, 2);
    b += convert_float16(as_int16(w >> 24u)) * vload16(3, x);
#endif
    return a + b;
}

/* sum_g scale[g] (zp[g] + OFFSET) xs[g] */
static inline float
zero_point_term(__global const uchar *scale, __global const uchar *zp, ulong n,
                uint groups, __global const float *xs)
{
    const ulong at = n * groups;
    float sum = 0;
    uint g = 0;
#if HAS_ZP || OFFSET
    float16 lanes = 0;
    for (; g + 16 <= groups; g += 16) {
        float z[16];
        for (uint i = 0; i < 16; i++)
            z[i] = weight_zero_point(zp, n, g + i, 1, groups) + OFFSET;
        lanes += FLOATS(SCALE, scale + (at + g) * SIZE(SCALE)) * vload16(0, z) *
                 vload16(0, xs + g);
    }
    sum = sum16(lanes);
    for (; g < groups; g++)
        sum += BYTES(SCALE, scale, at + g) *
               (weight_zero_point(zp, n, g, 1, groups) + OFFSET) * xs[g];
#endif
    return sum;
}

/* The product, still spread over 16 lanes that the caller adds up (sum16). */
static inline float16
row_dot(__global const uchar *data, __global const uchar *scale, __global const uchar *zp,
        ulong n, uint k_count, __global const float *x, __global const float *xs)
{
    const uint groups = k_count / GROUP, blocks = (k_count + BLOCK - 1) / BLOCK;
    __global const uchar *row = data + n * (k_count / PLANES) * 4;
    float16 sum = 0;
    for (uint b = 0; b < blocks; b++)
        sum += block_dot(block_words(row, b, k_count), x + b * BLOCK) *
               block_scales(scale, n, b, groups);
    sum.s0 -= zero_point_term(scale, zp, n, groups, xs);
    return sum;
}
#else
static inline float16
row_dot(__global const uchar *data, __global const uchar *scale, __global const uchar *zp,
        ulong n, uint k_count, __global const float *x, __global const float *xs)
{
    __global const uchar *row = data + n * k_count * SIZE(WEI);
    float16 a = 0, b = 0;
    uint k = 0;
    for (; k + 32 <= k_count; k += 32) {
        a += FLOATS(WEI, row + k * SIZE(WEI)) * vload16(0, x + k);
        b += FLOATS(WEI, row + (k + 16) * SIZE(WEI)) * vload16(0, x + k + 16);
    }
    for (; k < k_count; k++)
        a.s0 += BYTES(WEI, row, k) * x[k];
    return a + b;
}
#endif
