/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of weights times up to four rows of 8-bit activations (bytes.h), 16 words at a time, for
 * the few tokens of an expert in a prompt; short_gemv.h does the same for 16-bit activations.
 */
#if X_BYTES
#include "group_units.h"

#ifndef FACTOR_K
#define FACTOR_K 32
#define MINIMUMS 0
#endif

/* A position in a row of x: the words of a unit, and its sums and scales. */
struct x_bytes {
    __global const int *words, *less;
    __global const float *factor;
};

static inline struct x_bytes
begin_bytes(__global const int *row, uint k_count)
{
    const uint units = (k_count + BYTE_UNIT - 1) / BYTE_UNIT;
    return (struct x_bytes){row, row + units * 36,
                            (__global const float *)row + units * 32};
}

static inline void
next_bytes(struct x_bytes *x)
{
    x->words += 32;
    x->less += 8;
    x->factor += 4;
}

/* add_half adds the products of half of a unit's bytes with those of x to `sum`, add_halves of all
 * its bytes. The products are of q - BYTES_LESS. */
#define BYTES_LESS (BYTE_MADDS && !IN_SHORTS ? 128 : 0)
__attribute__((always_inline)) static inline int16
add_half(int16 sum, uint16 q, __global const int *x)
{
#if IN_SHORTS
    return add_neighbours(sum, byte_products(q, vload16(0, x)));
#elif BYTE_MADDS
    return add_neighbours(sum, signed_products(q, vload16(0, x)));
#else
    return add_bytes(sum, q, vload16(0, x));
#endif
}

static inline int16
add_halves(int16 sum, uint16 a, uint16 b, __global const int *x)
{
#if IN_SHORTS
    return add_neighbours(sum, byte_products(a, vload16(0, x)) +
                                   byte_products(b, vload16(1, x)));
#else
    return add_half(add_half(sum, a, x), b, x + 16);
#endif
}

/* Sums of a row, spread over lanes. If a register holds 8 floats (no AVX-512), both halves of 16
 * are added at once, so that registers are left for two rows of x. With AVX-512, sums of eight are
 * kept apart, because adding to half of a register takes three instructions. */
#ifdef __AVX512F__
struct lane_sums {
    float16 all;
    float8 eight;
};
#define ALL_LANES(sum) ((sum).all + (float16)((sum).eight, (float8)0))

static inline void
add_scaled(struct lane_sums *sum, float16 v, float16 factor)
{
    sum->all += v * factor;
}

static inline void
add_eight(struct lane_sums *sum, float8 v, float8 factor)
{
    sum->eight += v * factor;
}

/* Adds (a factor.x + b factor.y) both. */
static inline void
add_integers(struct lane_sums *sum, int16 a, int16 b, const float2 factor, float both)
{
    sum->all += (convert_float16(a) * factor.x + convert_float16(b) * factor.y) * both;
}
#else
struct lane_sums {
    float8 all;
};
#define ALL_LANES(sum) ((float16)((sum).all, (float8)0))

static inline void
add_scaled(struct lane_sums *sum, float16 v, float16 factor)
{
    sum->all += v.lo * factor.lo;
    sum->all += v.hi * factor.hi;
}

static inline void
add_eight(struct lane_sums *sum, float8 v, float8 factor)
{
    sum->all += v * factor;
}

static inline void
add_integers(struct lane_sums *sum, int16 a, int16 b, const float2 factor, float both)
{
    sum->all += (convert_float8(a.lo + a.hi) * factor.x +
                 convert_float8(b.lo + b.hi) * factor.y) * both;
}
#endif

#if INTEGER_FACTORS
/* The integer scales of half h of a unit, in the order in which sums of two products lie in
 * vectors. */
#define EIGHT(n) (n), (n), (n), (n), (n), (n), (n), (n)
#define LANE_MULTIPLIERS(u, h)                                                           \
    __builtin_shufflevector((u)->multiplier, (u)->multiplier, EIGHT(h), EIGHT(2 + (h)),  \
                            EIGHT(4 + (h)), EIGHT(6 + (h)))

/* Returns minus the sums of x of two units, times their zero points (or minimums) for each 16
 * columns, added up in pairs: two sums of the first unit, two of the second, and again. */
static inline int8
taken_sums(__global const int *less, short8 a, short8 b)
{
    typedef short shorts __attribute__((vector_size(32)));
    typedef int ints __attribute__((vector_size(32)));
    const short16 taken = (short16)(a.lo, b.lo, a.hi, b.hi);
    return __builtin_astype(
        __builtin_ia32_pmaddwd256(
            __builtin_ia32_packssdw256(__builtin_astype(vload8(0, less), ints),
                                       __builtin_astype(vload8(1, less), ints)),
            __builtin_astype(taken, shorts)),
        int8);
}

/* Returns the products of a unit with x, times the unit's integer scales. */
__attribute__((always_inline)) static inline int16
scaled_products(const struct unit *u, __global const int *words)
{
    short32 first = byte_products(u->q[0], vload16(0, words));
    const short32 second = byte_products(u->q[1], vload16(1, words));
    if (FACTOR_K == 32)
        first += second;
    const int16 v = add_pairs(0, __builtin_astype(first, int16),
                              __builtin_astype(LANE_MULTIPLIERS(u, 0), int16));
    return FACTOR_K == 32 ? v
                          : add_pairs(v, __builtin_astype(second, int16),
                                      __builtin_astype(LANE_MULTIPLIERS(u, 1), int16));
}

/* Like add_byte_unit, for both units of a block of a format with integer scales. */
__attribute__((always_inline)) static inline void
add_scaled_units(const struct unit u[2], const struct x_bytes *x, ulong row_words,
                 const uint tokens, struct lane_sums *sum)
{
#pragma unroll
    for (uint t = 0; t < tokens; t++) {
        const ulong at = t * row_words;
        const float8 f = vload8(0, x->factor + at);
        const int8 taken = taken_sums(x->less + at, u[0].taken, u[1].taken);
        add_integers(sum + t, scaled_products(u, x->words + at),
                     scaled_products(u + 1, x->words + at + 32),
                     (float2)(x->factor[at], x->factor[at + 4]), u->d.x);
        add_eight(sum + t, convert_float8(taken), f.s00440044 * u->d.y);
    }
}
#endif

/* Adds a unit's products with each of `tokens` rows of x, which are row_words apart; x is the first
 * row. `zero` is the zero point of the integers in each lane. */
__attribute__((always_inline)) static inline void
add_byte_unit(const struct unit *u, int16 zero, const struct x_bytes *x, ulong row_words,
              const uint tokens, struct lane_sums *sum)
{
#pragma unroll
    for (uint t = 0; t < tokens; t++) {
        const ulong at = t * row_words;
        const int8 less = vload8(0, x->less + at);
        const float4 f = vload4(0, x->factor + at);
        const float16 factor = SPREAD4(f, 0);
#if FACTOR_K == 16
        const int16 first = __builtin_shufflevector(less, (int8)0, 0, 8, 8, 8, 2, 8, 8, 8,
                                                    4, 8, 8, 8, 6, 8, 8, 8);
        const int16 second = __builtin_shufflevector(less, (int8)0, 1, 8, 8, 8, 3, 8, 8,
                                                     8, 5, 8, 8, 8, 7, 8, 8, 8);
        const int16 a = add_half(first * zero, u->q[0], x->words + at);
        const int16 b = add_half(second * zero, u->q[1], x->words + at + 16);
        const float16 both =
            convert_float16(a) * u->factor[0] + convert_float16(b) * u->factor[1];
        add_scaled(sum + t, both, factor);
#else
        const int16 first = __builtin_shufflevector(less, (int8)0, 0, 8, 1, 8, 2, 8, 3, 8,
                                                    4, 8, 5, 8, 6, 8, 7, 8);
        const int16 a = add_halves(first * zero, u->q[0], u->q[1], x->words + at);
        add_scaled(sum + t, convert_float16(a), u->factor[0] * factor);
#endif
        if (MINIMUMS)
            add_eight(sum + t, convert_float8(less), u->minimum * SPREAD2(f, 0));
    }
}

#if GROUP
/* Sets sum[] to the products of a row with a few rows of x, each spread over 16 lanes. */
__attribute__((always_inline)) static inline void
short_row_dots(const struct weight *w, ulong n, __global const int *words,
               ulong row_words, const uint tokens, float16 *sum)
{
    const uint units = (w->k_count + UNIT_COLUMNS - 1) / UNIT_COLUMNS;
    __global const uchar *row = row_bytes(w, n);
    struct x_bytes x = begin_bytes(words, w->k_count);
    struct lane_sums lanes[TOKENS_AT_ONCE];
    for (uint t = 0; t < tokens; t++)
        lanes[t] = (struct lane_sums){0};
    for (uint b = 0; b < units; b++, next_bytes(&x)) {
        struct group_factors f;
        struct unit u;
        for (uint i = 0; i < 8 / PLANES; i++)
            prefetch_ahead(row + (b * 8 / PLANES + i) * 64);
        group_unit(row, b, w->k_count, &u);
        group_factors(w, n, b, &f);
        u.factor[0] = SPREAD4(f.scale, 0);
        add_byte_unit(&u, SPREAD4(f.zero, 0) - BYTES_LESS, &x, row_words, tokens, lanes);
    }
    for (uint t = 0; t < tokens; t++)
        sum[t] = ALL_LANES(lanes[t]);
}
#elif BLOCKS
__attribute__((always_inline)) static inline void
byte_format_dots(const uint format, const struct weight *w, ulong n,
                 __global const int *words, ulong row_words, const uint tokens,
                 float16 *sum)
{
    const uint bytes = unit_bytes(format), columns = format_columns(format);
    const uint run = columns > UNIT_COLUMNS ? columns : UNIT_COLUMNS;
    const int zero = (int)format_zero(format) - BYTES_LESS;
    __global const uchar *row = blocks_begin(format, w, n);
    struct x_bytes x = begin_bytes(words, w->k_count);
    struct lane_sums lanes[TOKENS_AT_ONCE];
    struct unit u[2];
    uint k = 0;
    for (uint t = 0; t < tokens; t++)
        lanes[t] = (struct lane_sums){0};
    for (; k + run <= w->k_count; k += run, row += bytes) {
#pragma unroll
        for (uint i = 0; i < bytes; i += 64)
            prefetch_ahead(row + i);
#if INTEGER_FACTORS
        unit_at(format, row, 0, u);
        unit_at(format, row, UNIT_COLUMNS, u + 1);
        add_scaled_units(u, &x, row_words, tokens, lanes);
        next_bytes(&x);
        next_bytes(&x);
#else
#pragma unroll
        for (uint i = 0; i < run; i += UNIT_COLUMNS, next_bytes(&x)) {
            unit_at(format, row, i, u);
            add_byte_unit(u, zero, &x, row_words, tokens, lanes);
        }
#endif
    }
    if (!INTEGER_FACTORS && k < w->k_count) {
        unit_of_pieces(format, row, 0, w->k_count - k, u);
        add_byte_unit(u, zero, &x, row_words, tokens, lanes);
    }
    const float weight = weight_factor(w, n);
    for (uint t = 0; t < tokens; t++)
        sum[t] = ALL_LANES(lanes[t]) * weight;
}

/* Like byte_format_dots, for the weight's format. */
__attribute__((always_inline)) static inline void
short_row_dots(const struct weight *w, ulong n, __global const int *x, ulong row_words,
               const uint tokens, float16 *sum)
{
    if (FORMATS > 2 && w->format == 2)
        byte_format_dots(2, w, n, x, row_words, tokens, sum);
    else if (FORMATS > 1 && w->format == 1)
        byte_format_dots(1, w, n, x, row_words, tokens, sum);
    else
        byte_format_dots(0, w, n, x, row_words, tokens, sum);
}
#endif
#endif
