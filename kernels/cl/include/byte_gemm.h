/* SPDX-License-Identifier: Apache-2.0
 *
 * The tile of short_gemm.h for products of weight bytes with activation bytes: activations of 8
 * bits (bytes.h), or the high and the low byte of 16 bits (shorts.h). Lanes are tokens.
 *
 * Unit by unit (units.h) rows of weights are decoded to bytes, and the units of up to 48 tokens are
 * transposed: a vector holds one word of each of 16 tokens, two words of each of 8, or four of each
 * of 4. Both stay in the L1 cache. One, two or four words of a row are broadcast and multiplied by
 * the parts of vectors that hold tokens. Sums are integers over a stretch of columns with one
 * scale, then floats. The integer sums begin with what zero points subtract.
 */
#include "group_units.h"

#if GROUP
#define FACTOR_K 32
#define MINIMUMS 0
#endif
#include "byte_units.h"

#if BLOCKS
/* Stores the minimums of a unit, one for each stretch. */
static inline void
put_minimums(float8 minimum, float *out)
{
    if (FACTOR_K == 16)
        vstore8(minimum, 0, out);
    else
        vstore4(minimum.even, 0, out);
}
#endif

/* Decodes a unit into row r of `out`, as unit_rows.h requires. */
#if INTEGER_FACTORS
static inline void
put_blocks_unit(const struct unit *u, int zero, uint r, struct rows_unit *out)
{
    (void)zero;
    const ushort8 q = as_ushort8(u->multiplier);
    put_words(u, out->words[r]);
    vstore8(IN_SHORTS ? convert_uint8(q) * 0x10001u : as_uint8(convert_int8(u->multiplier)),
            0, out->multiplier[r]);
    out->scale[r][0] = u->d.x;
    /* also for the zero points of a format that shares a kernel with one with minimums */
    if (MINIMUMS)
        put_minimums(convert_float8(u->taken) * u->d.y, out->minimum[r]);
    else
        vstore4(as_uint4(u->taken), 0, out->taken[r]);
}
#elif BLOCKS
static inline void
put_blocks_unit(const struct unit *u, int zero, uint r, struct rows_unit *out)
{
    put_words(u, out->words[r]);
#if FACTOR_K == 16
    const float4 a = u->factor[0].s048c, c = u->factor[1].s048c;
    vstore8((float8)(a.x, c.x, a.y, c.y, a.z, c.z, a.w, c.w), 0, out->scale[r]);
#else
    vstore4(u->factor[0].s048c, 0, out->scale[r]);
#endif
    if (MINIMUMS)
        put_minimums(u->minimum, out->minimum[r]);
}
#else
static inline void
put_group_unit(const struct unit *u, const struct group_factors *f, uint r,
               struct rows_unit *out)
{
    put_words(u, out->words[r]);
    vstore4(f->scale, 0, out->scale[r]);
    vstore4(f->zero, 0, out->zero[r]);
}
#endif

#include "unit_rows.h"

/* The rows of x that a tile multiplies. */
struct x_rows {
    __global const int *x;
    ulong step; /* words from row to row */
    uint tokens, units, k_count;
};

/* ---- activations -------------------------------------------------------------------- */

static inline __global const int *
x_row(const struct x_rows *x, uint t)
{
    return x->x + min(t, x->tokens - 1) * x->step;
}

/* Transposes 16 words from `at` on of every token: d words of a token are in neighbouring lanes,
 * and vectors of the result are TOKEN_VECTORS apart. */
__attribute__((always_inline)) static inline void
turn_words(const struct x_rows *x, uint at, const uint vectors, const uint d,
           int16 (*out)[TOKEN_VECTORS])
{
    if (d == 4) {
        for (uint i = 0; i < 4; i++)
            out[i][0] = (int16)(vload4(i, x_row(x, 0) + at), vload4(i, x_row(x, 1) + at),
                                vload4(i, x_row(x, 2) + at), vload4(i, x_row(x, 3) + at));
    } else if (d == 2) {
        ulong8 v[8];
#pragma unroll
        for (uint t = 0; t < 8; t++)
            v[t] = as_ulong8(load_whole((__global const uchar *)(x_row(x, t) + at)));
        turn_pairs(v);
#pragma unroll
        for (uint i = 0; i < 8; i++)
            out[i][0] = as_int16(v[i]);
    } else {
#pragma unroll 1
        for (uint n = 0; n < vectors; n++) {
            uint16 v[16];
#pragma unroll
            for (uint t = 0; t < 16; t++)
                v[t] = load_whole((__global const uchar *)(x_row(x, 16 * n + t) + at));
            turn_over(v);
#pragma unroll
            for (uint i = 0; i < 16; i++)
                out[i][n] = as_int16(v[i]);
        }
    }
}

/* Returns a number of each token in all d lanes of the token; in_first, in the first of them and 0
 * in the others. */
static inline float16
in_lanes(float16 v, const uint d)
{
    return d == 4 ? v.s0000111122223333 : d == 2 ? v.s0011223344556677 : v;
}

static inline float16
in_first(float16 v, const uint d)
{
    const int16 first =
        d == 4   ? (int16)(-1, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0)
        : d == 2 ? (int16)(-1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0)
                 : (int16)-1;
    return as_float16(as_int16(in_lanes(v, d)) & first);
}

/* Returns d numbers of each token in its d lanes; v[i] has number i of every token. */
static inline float16
numbers_in_lanes(const float16 *v, const uint d)
{
    if (d == 1)
        return v[0];
    if (d == 2)
        return LOW16(v[0], v[1]);
    const float8 a = LOW8(v[0].lo, v[1].lo), b = LOW8(v[2].lo, v[3].lo);
    return as_float16(
        __builtin_shufflevector(as_ulong4(a), as_ulong4(b), 0, 4, 1, 5, 2, 6, 3, 7));
}

/* Transposes four words from `at` on of tokens 16 n … 16 n + 15. */
static inline void
turn_four(const struct x_rows *x, uint n, ulong at, float16 out[4])
{
    float4 v[16];
    for (uint t = 0; t < 16; t++)
        v[t] = as_float4(vload4(0, x_row(x, 16 * n + t) + at));
    turn_quads(v, out);
}

/* Returns the sum of 16 columns of x in float; 0 behind the last column (rows have one sum per 16
 * columns). */
static inline float
x_sum(const struct x_rows *x, uint t, uint i)
{
    __global const float *sums = (__global const float *)x_row(x, t) + x->units * 73;
    return i < x->k_count / 16 ? sums[i] : 0.0f;
}

/* Transposes scales and sums of unit b of tokens 16 n …. */
__attribute__((always_inline)) static inline void
turn_rest(const struct x_rows *x, uint b, uint n, const uint d, struct x_unit *out)
{
    const ulong factors = (ulong)x->units * X_UNIT_WORDS;
    float16 v[8], f[4];
#if X_BYTES
    turn_four(x, n, factors + b * 4, f);
#else
    float one[16];
    for (uint t = 0; t < 16; t++)
        one[t] = as_float(x_row(x, 16 * n + t)[factors + b]);
    f[0] = vload16(0, one);
#endif
    for (uint i = 0; i < X_FACTORS; i++)
        out->factor[i][n] = in_lanes(f[i], d);
    turn_four(x, n, factors + x->units * X_FACTORS + b * 8, v);
    turn_four(x, n, factors + x->units * X_FACTORS + b * 8 + 4, v + 4);
#if INTEGER_FACTORS && MINIMUMS
    float16 sum[STRETCHES];
    for (uint s = 0; s < STRETCHES; s++) {
        const uint i = s * 8 / STRETCHES;
        sum[s] = -f[0] * convert_float16(as_int16(v[i]) +
                                         (STRETCHES == 8 ? 0 : as_int16(v[i + 1])));
    }
    for (uint s = 0; s < STRETCHES; s += d)
        out->sums[s / d][n] = numbers_in_lanes(sum + s, d);
#elif INTEGER_FACTORS
    float16 pair[4];
    for (uint i = 0; i < 4; i++)
        pair[i] = as_float16((as_int16(v[2 * i]) & 0xffff) | as_int16(v[2 * i + 1]) << 16);
    for (uint i = 0; i < 4; i += d)
        out->less[i / d][n] = as_int16(numbers_in_lanes(pair + i, d));
#else
    for (uint s = 0; s < STRETCHES; s++) {
        const uint i = s * 8 / STRETCHES;
        const int16 sum = as_int16(v[i]) + (STRETCHES == 8 ? 0 : as_int16(v[i + 1]));
        out->less[s][n] = as_int16(in_first(as_float16(sum), d));
    }
#endif
#if MINIMUMS && !INTEGER_FACTORS
    for (uint s = 0; s < STRETCHES; s++) {
        const uint i = b * 8 + s * 8 / STRETCHES;
#if X_BYTES
        out->sums[s][n] =
            convert_float16(out->less[s][n]) * -out->factor[s * 4 / STRETCHES][n];
#else
        float sum[16];
        for (uint t = 0; t < 16; t++)
            sum[t] = x_sum(x, 16 * n + t, i) +
                     (STRETCHES == 8 ? 0.0f : x_sum(x, 16 * n + t, i + 1));
        out->sums[s][n] = in_first(vload16(0, sum), d);
#endif
    }
#endif
}

__attribute__((always_inline)) static inline void
turn_x(const struct x_rows *x, uint b, const uint vectors, const uint d,
       struct x_unit *out)
{
    for (uint h = 0; h < 2; h++)
        for (uint p = 0; p < X_PLANES; p++)
            turn_words(x, b * X_UNIT_WORDS + (h * X_PLANES + p) * 16, vectors, d,
                       out->words[p] + h * 16 / d);
#if IN_PAIRS && X_BYTES
    for (uint i = 0; i < 32 / d; i++) {
        for (uint n = 0; n < vectors; n++) {
            const short32 v = AS_SHORTS(out->words[0][i][n]);
            out->words[0][i][n] = __builtin_astype(v << (short)8 >> (short)8, int16);
            out->words[1][i][n] = __builtin_astype(v >> (short)8, int16);
        }
    }
#endif
    for (uint n = 0; n < vectors; n++)
        turn_rest(x, b, n, d, out);
}

#include "byte_products.h"

/* Adds the products of all units, for `vectors` vectors of tokens, of which `parts` parts
 * (LANE_PARTS a vector) have any tokens. */
__attribute__((always_inline)) static inline void
add_units(const struct short_rows rows[VECTORS], const struct tile_rows *tile,
          const struct x_rows *x, const uint vectors, const uint parts, const uint d,
          float16 (*f)[TOKEN_VECTORS])
{
    struct x_unit xu;
    struct rows_unit w;
#pragma unroll 1
    for (uint b = 0; b < x->units; b++) {
        turn_x(x, b, vectors, d, &xu);
        decode_rows(rows, tile, b, &w);
#pragma unroll 1
        for (uint v = 0; v < VECTORS; v++) {
#if !INTEGER_FACTORS
            begin_sums(&xu, tile->zero[v], vectors);
#endif
            add_rows(&w, &xu, 16 * v, parts, d, f);
        }
    }
}

/* Adds up the d lanes of each token; the result for token t is in lane t. */
static inline float16
join_lanes(float16 v, const uint d)
{
    if (d == 1)
        return v;
    const float8 two = v.even + v.odd;
    if (d == 2)
        return (float16)(two, (float8)0);
    return (float16)(two.even + two.odd, (float4)0, (float8)0);
}

/* Computes the products of the rows of all vectors, rows[v] being those of vector v, with `tokens`
 * rows of x. */
static inline void
short_gemm(const struct short_rows rows[VECTORS], __global const int *x, uint tokens,
           float16 (*out)[VECTORS])
{
    const uint k_count = rows[0].w.k_count;
    const struct x_rows xs = {x, prepared_words(k_count, X_FORM), tokens,
                              (k_count + UNIT_COLUMNS - 1) / UNIT_COLUMNS, k_count};
    const uint d = tokens <= 4 ? FEW_WORDS : tokens <= 8 ? FEW_WORDS / 2 : 1;
    const uint vectors = (tokens + 15) / 16;
    float16 f[TILE_ROWS][TOKEN_VECTORS];
    struct tile_rows tile;
    begin_rows(rows, &tile);
    for (uint r = 0; r < TILE_ROWS; r++)
        for (uint n = 0; n < TOKEN_VECTORS; n++)
            f[r][n] = 0;
    if (tokens <= 4)
        add_units(rows, &tile, &xs, 1, 1, FEW_WORDS, f);
    else if (tokens <= 8)
        add_units(rows, &tile, &xs, 1, 1, FEW_WORDS / 2, f);
    else if (vectors == 1)
        add_units(rows, &tile, &xs, 1, LANE_PARTS, 1, f);
    else if (vectors == 2)
        add_units(rows, &tile, &xs, 2, 2 * LANE_PARTS, 1, f);
    else
        add_units(rows, &tile, &xs, 3, 3 * LANE_PARTS, 1, f);
#pragma unroll 1
    for (uint v = 0; v < VECTORS; v++) {
        const float weight = weight_factor(&rows[v].w, rows[v].first);
#pragma unroll 1
        for (uint n = 0; n < vectors; n++) {
            uint16 q[16];
#pragma unroll
            for (uint r = 0; r < 16; r++)
                q[r] = as_uint16(join_lanes(f[16 * v + r][n] * weight, d));
            turn_over(q);
#pragma unroll
            for (uint t = 0; t < 16; t++)
                out[16 * n + t][v] = as_float16(q[t]);
        }
    }
}
