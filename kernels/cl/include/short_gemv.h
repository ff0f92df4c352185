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
/* Adds a unit's products with 128 of x, whose factor and sums of 16 are given. */
__attribute__((always_inline)) static inline void
add_unit(const struct unit *u, __global const int *x, float factor, float8 xs,
         float16 *sum, float8 *minimums)
{
    int16 a = add_pairs((int16)0, u->pairs[0], vload16(0, x));
    a = add_pairs(a, u->pairs[1], vload16(1, x));
    int16 b = add_pairs((int16)0, u->pairs[2], vload16(2, x));
    b = add_pairs(b, u->pairs[3], vload16(3, x));
#if FACTOR_K == 16
    *sum += (convert_float16(a) * u->factor[0] + convert_float16(b) * u->factor[1]) * factor;
#else
    *sum += convert_float16(a + b) * (u->factor[0] * factor);
#endif
    if (MINIMUMS)
        *minimums += u->minimum * xs;
}

/* The same of one format. Of the sums of x, those behind the row's end are not there. */
__attribute__((always_inline)) static inline float16
short_format_dot(const uint format, const struct weight *w, ulong n,
                 __global const int *x, __global const float *xs)
{
    const uint units = (w->k_count + UNIT_COLUMNS - 1) / UNIT_COLUMNS;
    const uint bytes = unit_bytes(format);
    const uint run = max(format_columns(format), (uint)UNIT_COLUMNS);
    __global const uchar *row = blocks_begin(format, w, n);
    __global const float *factor = (__global const float *)x + units * (UNIT_COLUMNS / 2);
    float16 sum = 0;
    float8 minimums = 0;
    struct unit u;
    uint k = 0;
    for (; k + run <= w->k_count; k += run, row += bytes) {
#pragma unroll
        for (uint i = 0; i < bytes; i += 64)
            prefetch_ahead(row + i);
#pragma unroll
        for (uint i = 0; i < run; i += UNIT_COLUMNS, x += UNIT_COLUMNS / 2, xs += 8) {
            unit_at(format, row, i, &u);
            add_unit(&u, x, *factor++, vload8(0, xs), &sum, &minimums);
        }
    }
    if (k < w->k_count) {
        const uint left = w->k_count - k;
        float last[8];
        for (uint i = 0; i < 8; i++)
            last[i] = i < left / 16 ? xs[i] : 0.0f;
        unit_of_pieces(format, row, 0, left, &u);
        add_unit(&u, x, *factor, vload8(0, last), &sum, &minimums);
    }
    sum.lo -= minimums;
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
