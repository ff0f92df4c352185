/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of weights times one row of 16-bit activations (shorts.h), 16 words at a time:
 *
 *     sum_g scale[g] (sum_{k in g} q[k] x[k] - zp[g] sum_{k in g} x[k])
 *
 * A mask leaves two weights of each word, whose products are added by one instruction. The sums of
 * the groups are behind x (prepared.h).
 */
#include "block_shorts.h"
#include "gemv.h"
#include "shorts.h"

#define TOKENS_AT_ONCE 4 /* most rows of x multiplied by a row of weights while it is read */

#if X_BYTES
#include "byte_gemv.h"
#elif SHORTS && GROUP && (GROUP % BLOCK == 0 || BLOCK % GROUP == 0)
#define KEEP (PLANES == 8 ? 0xf000fu : 0xff00ffu)

/* Returns the sums of the products of a block's words. */
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
/* Adds to sum[t] the products of `groups` whole groups, scaled, with each of `tokens` rows of x,
 * which are row_words apart. */
__attribute__((always_inline)) static inline void
add_groups(__global const uchar *row, uint groups, const float *scale,
           __global const int *x, __global const float *factor, ulong row_words,
           const uint tokens, float16 *sum)
{
    for (uint g = 0; g < groups; g++) {
#pragma unroll 4
        for (uint i = 0; i < GROUP / BLOCK; i++, row += 64, x += BLOCK / 2, factor++) {
            const uint16 words = ((__global const loose_uint16 *)row)->v ^ FLIP;
            prefetch_ahead(row);
#pragma unroll
            for (uint t = 0; t < tokens; t++)
                sum[t] += convert_float16(block_short_dot(words, x + t * row_words)) *
                          (scale[g] * factor[t * row_words]);
        }
    }
}
#else
/* The same if a block has several groups; the row's last block may be incomplete. */
__attribute__((always_inline)) static inline void
add_groups(__global const uchar *row, uint groups, const float *scale,
           __global const int *x, __global const float *factor, ulong row_words,
           const uint tokens, float16 *sum)
{
    for (uint g = 0, b = 0; g < groups; g += BLOCK / GROUP, b++) {
        const uint16 words = block_words(row, b, groups * GROUP);
        float lanes[16];
#pragma unroll
        for (uint i = 0; i < 16; i++)
            lanes[i] = scale[min(g + i * PLANES / GROUP, groups - 1)];
        prefetch_ahead(row + b * 64);
#pragma unroll
        for (uint t = 0; t < tokens; t++)
            sum[t] += convert_float16(block_short_dot(
                          words, x + t * row_words + b * BLOCK / 2)) *
                      (vload16(0, lanes) * factor[t * row_words + b]);
    }
}
#endif

/* The products of a row with a few rows of x, each still spread over 16 lanes. */
__attribute__((always_inline)) static inline void
short_row_dots(const struct weight *w, ulong n, __global const int *x, ulong row_words,
               const uint tokens, float16 *sum)
{
    const uint groups = group_count(w), blocks = prepared_blocks(w->k_count, PLANES);
    const ulong first_group = row_begin(w, n) / GROUP;
    __global const uchar *row = row_bytes(w, n);
    __global const float *factor = (__global const float *)x + blocks * (BLOCK / 2);
    __global const float *xs = factor + blocks;
    for (uint t = 0; t < tokens; t++)
        sum[t] = 0;
    for (uint first = 0; first < groups; first += 16) {
        const uint count = min(groups - first, 16u), b = first * GROUP / BLOCK;
        struct factors f;
        load_factors(w->scale, w->zp, first_group + first, count, &f);
        add_groups(row + (ulong)b * 64, count, f.scale + f.skip, x + b * (BLOCK / 2),
                   factor + b, row_words, tokens, sum);
        for (uint t = 0; t < tokens; t++)
            sum[t] -= zero_term(&f, count, xs + t * row_words + first);
    }
}
#elif SHORTS && BLOCKS
/* A position in a row of x (shorts.h): the words of a unit, and its sums and scale. */
struct x_units {
    __global const int *words, *less;
    __global const float *factor, *sums;
};

/* Sets a and b to the integer products of halves 0 and 1 of a unit with x; if both halves have one
 * scale, a to the sum of both. */
__attribute__((always_inline)) static inline void
unit_products(const struct unit *u, const uint zero, __global const int *x,
              __global const int *less, int16 *a, int16 *b)
{
    const int8 l = vload8(0, less) * (int)zero;
#if FACTOR_K == 16
    const int16 first =
        __builtin_shufflevector(l, (int8)0, 0, 8, 8, 8, 2, 8, 8, 8, 4, 8, 8, 8, 6, 8, 8, 8);
    const int16 second =
        __builtin_shufflevector(l, (int8)0, 1, 8, 8, 8, 3, 8, 8, 8, 5, 8, 8, 8, 7, 8, 8, 8);
#else
    const int16 first =
        __builtin_shufflevector(l, (int8)0, 0, 8, 1, 8, 2, 8, 3, 8, 4, 8, 5, 8, 6, 8, 7, 8);
#endif
#if BYTE_DOTS
    int16 high = add_bytes((int16)0, u->q[0], vload16(0, x));
    int16 low = add_bytes(first, u->q[0], vload16(1, x));
#if FACTOR_K == 16
    *a = (high << 8) + low;
    high = 0;
    low = second;
#endif
    high = add_bytes(high, u->q[1], vload16(2, x));
    low = add_bytes(low, u->q[1], vload16(3, x));
    *(FACTOR_K == 16 ? b : a) = (high << 8) + low;
#else
    int16 sum[2] = {first, 0};
#if FACTOR_K == 16
    sum[1] = second;
#endif
#pragma unroll
    for (uint h = 0; h < 2; h++) {
        sum[h] = add_pairs(sum[h], byte_pairs(u->q[h], 0), vload16(2 * h, x));
        sum[h] = add_pairs(sum[h], byte_pairs(u->q[h], 1), vload16(2 * h + 1, x));
    }
    *a = FACTOR_K == 16 ? sum[0] : sum[0] + sum[1];
    *b = sum[1];
#endif
}

/* Adds a unit's products with each of `tokens` rows of x, which are row_words apart; x is the first
 * row. `sums`: sums of x that the unit has. */
__attribute__((always_inline)) static inline void
add_unit(const struct unit *u, const uint zero, const struct x_units *x,
         ulong row_words, uint sums, const uint tokens, float16 *sum, float8 *minimums)
{
#pragma unroll
    for (uint t = 0; t < tokens; t++) {
        const ulong at = t * row_words;
        __global const float *xs = x->sums + at;
        const float factor = x->factor[at];
        int16 a, b;
        unit_products(u, zero, x->words + at, x->less + at, &a, &b);
        if (FACTOR_K == 16)
            sum[t] += (convert_float16(a) * u->factor[0] +
                       convert_float16(b) * u->factor[1]) *
                      factor;
        else
            sum[t] += convert_float16(a) * (u->factor[0] * factor);
        if (MINIMUMS && sums == 8)
            minimums[t] += u->minimum * vload8(0, xs);
        for (uint i = 0; MINIMUMS && sums < 8 && i < sums; i++)
            minimums[t].s0 += ((const float *)&u->minimum)[i] * xs[i];
    }
}

static inline void
skip_units(struct x_units *x, uint n)
{
    x->words += n * (UNIT_COLUMNS / 2);
    x->less += n * 8;
    x->factor += n;
    x->sums += n * 8;
}

/* The products of a row with a few rows of x, each still spread over 16 lanes. Each weight is
 * decoded once. */
__attribute__((always_inline)) static inline void
short_format_dots(const uint format, const struct weight *w, ulong n,
                  __global const int *words, ulong row_words, const uint tokens,
                  float16 *sum)
{
    const uint units = (w->k_count + UNIT_COLUMNS - 1) / UNIT_COLUMNS;
    const uint bytes = unit_bytes(format), zero = format_zero(format);
    const uint columns = format_columns(format);
    const uint run = columns > UNIT_COLUMNS ? columns : UNIT_COLUMNS;
    __global const uchar *row = blocks_begin(format, w, n);
    __global const float *factor =
        (__global const float *)words + units * (UNIT_COLUMNS / 2);
    struct x_units x = {words, (__global const int *)factor + units, factor,
                        factor + units * 9};
    float8 minimums[TOKENS_AT_ONCE];
    uint k = 0;
    for (uint t = 0; t < tokens; t++) {
        sum[t] = 0;
        minimums[t] = 0;
    }
    for (; k + run <= w->k_count; k += run, row += bytes) {
#pragma unroll
        for (uint i = 0; i < bytes; i += 64)
            prefetch_ahead(row + i);
#pragma unroll
        for (uint i = 0; i < run; i += UNIT_COLUMNS) {
            struct unit u;
            unit_at(format, row, i, &u);
            add_unit(&u, zero, &x, row_words, 8, tokens, sum, minimums);
            skip_units(&x, 1);
        }
    }
    if (k < w->k_count) {
        struct unit u;
        unit_of_pieces(format, row, 0, w->k_count - k, &u);
        add_unit(&u, zero, &x, row_words, (w->k_count - k) / 16, tokens, sum, minimums);
    }
    const float weight = weight_factor(w, n);
    for (uint t = 0; t < tokens; t++) {
        sum[t].lo -= minimums[t];
        sum[t] *= weight;
    }
}

/* Like short_format_dots, for the weight's format. */
__attribute__((always_inline)) static inline void
short_row_dots(const struct weight *w, ulong n, __global const int *x, ulong row_words,
               const uint tokens, float16 *sum)
{
    if (FORMATS > 2 && w->format == 2)
        short_format_dots(2, w, n, x, row_words, tokens, sum);
    else if (FORMATS > 1 && w->format == 1)
        short_format_dots(1, w, n, x, row_words, tokens, sum);
    else
        short_format_dots(0, w, n, x, row_words, tokens, sum);
}

#endif
