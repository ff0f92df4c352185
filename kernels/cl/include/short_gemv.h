/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of weights times one row of 16-bit activations (shorts.h), 16 words wide:
 *
 *     sum_g scale[g] (sum_{k in g} q[k] x[k] - zp[g] sum_{k in g} x[k])
 *
 * A mask leaves two weights of each word, which are multiplied and added at once. xs has the sums
 * of the groups, as gemv.h.
 */
#include "block_shorts.h"
#include "gemv.h"
#include "shorts.h"

#if SHORTS && GROUP && (GROUP % BLOCK == 0 || BLOCK % GROUP == 0)
#define KEEP (PLANES == 8 ? 0xf000fu : 0xff00ffu)

/* Sums of the products of a block's words. */
static inline int16
block_short_dot(uint16 w, __global const int *x)
{
    int16 a = add_pairs((int16)0, as_int16(w & KEEP), vload16(0, x));
#if PLANES == 8
    int16 b = add_pairs((int16)0, as_int16(w >> 4u & KEEP), vload16(1, x));
    a = add_pairs(a, as_int16(w >> 8u & KEEP), vload16(2, x));
    b = add_pairs(b, as_int16(w >> 12u & KEEP), vload16(3, x));
    return a + b;
#else
    return add_pairs(a, as_int16(w >> 8u & KEEP), vload16(1, x));
#endif
}

#if GROUP % BLOCK == 0
/* Blocks of `groups` whole groups, scaled. */
static inline float16
short_groups_dot(__global const uchar *row, uint groups, const float *scale,
                 __global const int *x, __global const float *factor)
{
    float16 sum = 0;
    for (uint g = 0; g < groups; g++) {
#pragma unroll 4
        for (uint i = 0; i < GROUP / BLOCK; i++, row += 64, x += BLOCK / 2, factor++) {
            prefetch_ahead(row);
            sum += convert_float16(block_short_dot(
                       ((__global const loose_uint16 *)row)->v ^ FLIP, x)) *
                   (scale[g] * *factor);
        }
    }
    return sum;
}
#else
/* The same where a block holds several groups; the row's last block may be cut short. */
static inline float16
short_groups_dot(__global const uchar *row, uint groups, const float *scale,
                 __global const int *x, __global const float *factor)
{
    float16 sum = 0;
    for (uint g = 0, b = 0; g < groups; g += BLOCK / GROUP, b++) {
        float lanes[16];
#pragma unroll
        for (uint i = 0; i < 16; i++)
            lanes[i] = scale[min(g + i * PLANES / GROUP, groups - 1)];
        prefetch_ahead(row + b * 64);
        sum += convert_float16(block_short_dot(block_words(row, b, groups * GROUP),
                                               x + b * BLOCK / 2)) *
               (vload16(0, lanes) * factor[b]);
    }
    return sum;
}
#endif

/* The product, still spread over 16 lanes that the caller adds up (sum16). */
__attribute__((always_inline)) static inline float16
short_row_dot(const struct weight *w, ulong n, __global const int *x,
              __global const float *xs)
{
    const uint groups = group_count(w), blocks = (w->k_count + BLOCK - 1) / BLOCK;
    const ulong first_group = row_begin(w, n) / GROUP;
    __global const uchar *row = row_bytes(w, n);
    __global const float *factor = (__global const float *)x + blocks * (BLOCK / 2);
    float16 sum = 0;
    for (uint first = 0; first < groups; first += 16) {
        const uint count = min(groups - first, 16u), b = first * GROUP / BLOCK;
        struct factors f;
        load_factors(w->scale, w->zp, first_group + first, count, &f);
        sum += short_groups_dot(row + (ulong)b * 64, count, f.scale + f.skip,
                                x + b * (BLOCK / 2), factor + b) -
               zero_term(&f, count, xs + first);
    }
    return sum;
}
#elif SHORTS && BLOCKS
/* Factors of a block's lanes. */
static inline float16
lane_factors(const float2 f[4])
{
#if FACTOR_K == 16
    return (float16)((float4)f[0].x, (float4)f[1].x, (float4)f[2].x, (float4)f[3].x);
#else
    return (float16)((float8)f[0].x, (float8)f[2].x);
#endif
}

/* Sums of the x of a block; of half a block nothing is behind them. */
static inline float4
block_sums(__global const float *xs, bool whole)
{
    return whole ? vload4(0, xs) : (float4)(vload2(0, xs), 0.0f, 0.0f);
}

/* The same of one format, whose blocks of 64 k are unrolled: what they share is read once. */
__attribute__((always_inline)) static inline float16
short_format_dot(const uint format, const struct weight *w, ulong n,
                 __global const int *x, __global const float *xs)
{
    const uint blocks = (w->k_count + BLOCK - 1) / BLOCK;
    const uint run = format_columns(format) < BLOCK ? BLOCK : format_columns(format);
    __global const uchar *row = blocks_begin(format, w, n);
    __global const float *factor = (__global const float *)x + blocks * (BLOCK / 2);
    float16 sum = 0;
    float4 minimums = 0;
    for (uint k = 0; k < w->k_count; k += run) {
        prefetch_ahead(row);
#pragma unroll
        for (uint i = 0; i < run; i += BLOCK, x += BLOCK / 2, factor++, xs += 4) {
            float2 f[4];
            const int16 q = block_integers(format, row, i, w->k_count - k, f);
            int16 dot = add_pairs((int16)0, byte_pairs(q, 0), vload16(0, x));
            dot = add_pairs(dot, byte_pairs(q, 1), vload16(1, x));
            sum += convert_float16(dot) * (lane_factors(f) * *factor);
            if (MINIMUMS)
                minimums += (float4)(f[0].y, f[1].y, f[2].y, f[3].y) *
                            block_sums(xs, k + i + 32 < w->k_count);
        }
        row += run / format_columns(format) * format_bytes(format);
    }
    sum.s0123 -= minimums;
    return sum;
}

__attribute__((always_inline)) static inline float16
short_row_dot(const struct weight *w, ulong n, __global const int *x,
              __global const float *xs)
{
    return (FORMATS > 2 && w->format == 2   ? short_format_dot(2, w, n, x, xs)
            : FORMATS > 1 && w->format == 1 ? short_format_dot(1, w, n, x, xs)
                                            : short_format_dot(0, w, n, x, xs)) *
           weight_factor(w, n);
}
#endif
