/* SPDX-License-Identifier: Apache-2.0
 *
 * The tile of short_gemm.h where bytes of weights meet bytes of activations: one of 8 bits each
 * (bytes.h), or the high and the low one of 16 bits (shorts.h). Tokens are in lanes.
 *
 * Unit by unit (units.h) rows of weights are decoded to bytes, and the units of up to 48 tokens
 * turned over so that a vector holds one word of 16 tokens, two words of each of up to 8, or four
 * of up to 4; both stay in the L1 cache. Each word of a row, or two, or four, is broadcast and
 * multiplied. Sums are integers over a stretch of columns with one factor, then floats. Zero points
 * are where these integers begin.
 */
#include "group_units.h"

#if GROUP
#define FACTOR_K 32
#define MINIMUMS 0
#endif
#define X_PLANES      (X_BYTES ? 1 : 2) /* bytes of an integer */
#define X_UNIT_WORDS  (X_PLANES * 32)
#define X_FACTORS     (X_BYTES ? 4 : 1) /* of a unit of x */
#define STRETCHES     (FACTOR_K == 16 ? 8 : 4)
#define TOKEN_VECTORS (MOST_TOKENS / 16)
#define TILE_ROWS     (16 * VECTORS)
#define MOST_ROWS     (16 / X_PLANES) /* whose sums are registers */

/* A unit of all tokens; each is in so many lanes as words of it are in a vector. */
struct x_unit {
    int16 words[X_PLANES][32][TOKEN_VECTORS];
    int16 less[STRETCHES][TOKEN_VECTORS]; /* minus the sums of integers */
    float16 factor[X_FACTORS][TOKEN_VECTORS], sums[STRETCHES][TOKEN_VECTORS];
};

/* A unit of all rows. */
struct rows_unit {
    uint16 words[TILE_ROWS][2];
    float scale[TILE_ROWS][STRETCHES], minimum[TILE_ROWS][STRETCHES];
    int zero[TILE_ROWS][STRETCHES];
};

/* Rows of weights: where they begin, from where to what will be wanted next, what formats take off
 * integers. */
struct tile_rows {
    __global const uchar *begin[TILE_ROWS];
    ulong ahead[VECTORS];
    int zero[VECTORS];
};

/* Rows of x. */
struct x_rows {
    __global const int *x;
    ulong step; /* words from row to row */
    uint tokens, units, k_count;
};

/* ---- weights ------------------------------------------------------------------------ */

#if BLOCKS
__attribute__((always_inline)) static inline void
begin_format(const uint format, const struct short_rows *rows, uint v,
             struct tile_rows *out)
{
    out->ahead[v] = rows->ahead * blocks_step(format, &rows->w);
    out->zero[v] = (int)format_zero(format);
    for (uint r = 0; r < 16; r++)
        out->begin[16 * v + r] =
            blocks_begin(format, &rows->w, min(rows->first + r, rows->last));
}

/* Unit b of row r. */
__attribute__((always_inline)) static inline void
decode_format(const uint format, const struct tile_rows *rows, uint b, uint k_count,
              uint r, struct rows_unit *out)
{
    const uint k = b * UNIT_COLUMNS, bytes = unit_bytes(format);
    __global const uchar *row = rows->begin[r];
    __global const uchar *p = row + k / format_columns(format) * format_bytes(format);
    struct unit u;
#pragma unroll
    for (uint i = 0; i < bytes; i += 64)
        prefetch_line(p + i + rows->ahead[r / 16]);
    if (k + UNIT_COLUMNS <= k_count)
        unit_at(format, row, k, &u);
    else
        unit_of_pieces(format, row, k, k_count, &u);
    out->words[r][0] = u.q[0];
    out->words[r][1] = u.q[1];
#if FACTOR_K == 16
    const float4 a = u.factor[0].s048c, c = u.factor[1].s048c;
    vstore8((float8)(a.x, c.x, a.y, c.y, a.z, c.z, a.w, c.w), 0, out->scale[r]);
    if (MINIMUMS)
        vstore8(u.minimum, 0, out->minimum[r]);
#else
    vstore4(u.factor[0].s048c, 0, out->scale[r]);
    if (MINIMUMS)
        vstore4(u.minimum.even, 0, out->minimum[r]);
#endif
}

static inline void
begin_rows(const struct short_rows rows[VECTORS], struct tile_rows *out)
{
    for (uint v = 0; v < VECTORS; v++) {
        if (FORMATS > 1 && rows[v].w.format == 1)
            begin_format(1, &rows[v], v, out);
        else
            begin_format(0, &rows[v], v, out);
    }
}

static inline void
decode_rows(const struct short_rows rows[VECTORS], const struct tile_rows *tile, uint b,
            struct rows_unit *out)
{
    const uint k_count = rows[0].w.k_count;
#pragma unroll 1
    for (uint v = 0; v < VECTORS; v++) {
        if (FORMATS > 1 && rows[v].w.format == 1)
            for (uint r = 16 * v; r < 16 * v + 16; r++)
                decode_format(1, tile, b, k_count, r, out);
        else
            for (uint r = 16 * v; r < 16 * v + 16; r++)
                decode_format(0, tile, b, k_count, r, out);
    }
}
#else
static inline void
begin_rows(const struct short_rows rows[VECTORS], struct tile_rows *out)
{
    for (uint v = 0; v < VECTORS; v++) {
        const struct weight *w = &rows[v].w;
        out->ahead[v] = (ulong)rows[v].ahead * (w->view.x / PLANES * 4);
        for (uint r = 0; r < 16; r++)
            out->begin[16 * v + r] = row_bytes(w, min(rows[v].first + r, rows[v].last));
    }
}

static inline void
decode_rows(const struct short_rows rows[VECTORS], const struct tile_rows *tile, uint b,
            struct rows_unit *out)
{
#pragma unroll 1
    for (uint r = 0; r < TILE_ROWS; r++) {
        const struct short_rows *from = &rows[r / 16];
        __global const uchar *p = tile->begin[r];
        for (uint i = 0; i < 8 / PLANES; i++)
            prefetch_line(p + (b * 8 / PLANES + i) * 64 + tile->ahead[r / 16]);
        struct unit u;
        struct group_factors f;
        group_unit(p, b, from->w.k_count, &u);
        group_factors(&from->w, min(from->first + r % 16, from->last), b, &f);
        out->words[r][0] = u.q[0];
        out->words[r][1] = u.q[1];
        vstore4(f.scale, 0, out->scale[r]);
        vstore4(f.zero, 0, out->zero[r]);
    }
}
#endif

/* ---- activations -------------------------------------------------------------------- */

static inline __global const int *
x_row(const struct x_rows *x, uint t)
{
    return x->x + min(t, x->tokens - 1) * x->step;
}

/* 16 words from `at` on of every token, each `d` in neighbouring lanes: vectors a distance of
 * TOKEN_VECTORS apart. */
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

/* A number of each of the tokens: in all of its lanes, or in the first of them alone. */
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

/* Words at … of tokens 16 n …, four of each. */
static inline void
turn_four(const struct x_rows *x, uint n, ulong at, float16 out[4])
{
    float4 v[16];
    for (uint t = 0; t < 16; t++)
        v[t] = as_float4(vload4(0, x_row(x, 16 * n + t) + at));
    turn_quads(v, out);
}

/* The sums of x in floats, behind which are none: rows have one each 16 k. */
static inline float
x_sum(const struct x_rows *x, uint t, uint i)
{
    __global const float *sums = (__global const float *)x_row(x, t) + x->units * 73;
    return i < x->k_count / 16 ? sums[i] : 0.0f;
}

/* What belongs to the words of unit b of tokens 16 n …. */
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
    for (uint s = 0; s < STRETCHES; s++) {
        const uint i = s * 8 / STRETCHES;
        const int16 sum = as_int16(v[i]) + (STRETCHES == 8 ? 0 : as_int16(v[i + 1]));
        out->less[s][n] = as_int16(in_first(as_float16(sum), d));
    }
#if MINIMUMS
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
    for (uint n = 0; n < vectors; n++)
        turn_rest(x, b, n, d, out);
}

/* ---- products ----------------------------------------------------------------------- */

/* `d` words of a row, as often as lanes hold. */
__attribute__((always_inline)) static inline uint16
repeated(const uint *w, const uint d)
{
    if (d == 1)
        return *w;
    if (d == 2)
        return as_uint16((ulong8)(*(const ulong *)w));
    const uint4 q = *(const uint4 *)w;
    return (uint16)(q, q, q, q);
}

/* What the integers of rows `first` … over stretch s begin with. */
__attribute__((always_inline)) static inline int16
begin_with(const struct rows_unit *w, const struct x_unit *x, int zero, uint row, uint s,
           uint n)
{
#if BLOCKS
    return x->less[s][n] * zero;
#elif HAS_ZP || OFFSET
    return x->less[s][n] * w->zero[row][s];
#else
    return 0;
#endif
}

/* Adds the products of rows `first` … over stretch s. Inlined by force so that the sums are
 * registers. */
__attribute__((always_inline)) static inline void
add_stretch(const struct rows_unit *w, const struct x_unit *x, int zero, uint first,
            uint s, const uint rows, const uint vectors, const uint d,
            float16 (*f)[TOKEN_VECTORS])
{
    const uint b = STRETCHES == 8 ? s / 2 : s;
    const uint halves = STRETCHES == 8 ? 1 : 2, h0 = STRETCHES == 8 ? s % 2 : 0;
    int16 high[MOST_ROWS][TOKEN_VECTORS], sum[MOST_ROWS][TOKEN_VECTORS];
#pragma unroll
    for (uint r = 0; r < rows; r++) {
#pragma unroll
        for (uint n = 0; n < vectors; n++) {
            high[r][n] = 0;
            sum[r][n] = begin_with(w, x, zero, first + r, s, n);
        }
    }
#pragma unroll
    for (uint i = 0; i < halves * 4; i += d) {
        const uint at = (h0 + i / 4) * 16 + b * 4 + i % 4;
#pragma unroll
        for (uint r = 0; r < rows; r++) {
            const uint16 q = repeated((const uint *)w->words[first + r] + at, d);
#pragma unroll
            for (uint n = 0; n < vectors; n++) {
                if (!X_BYTES)
                    high[r][n] = add_bytes(high[r][n], q, x->words[0][at / d][n]);
                sum[r][n] = add_bytes(sum[r][n], q, x->words[X_PLANES - 1][at / d][n]);
            }
        }
    }
#pragma unroll
    for (uint r = 0; r < rows; r++) {
#pragma unroll
        for (uint n = 0; n < vectors; n++) {
            const float16 factor = x->factor[X_BYTES ? s * 4 / STRETCHES : 0][n];
            float16 y = f[first + r][n];
            y += convert_float16(X_BYTES ? sum[r][n] : (high[r][n] << 8) + sum[r][n]) *
                 (factor * w->scale[first + r][s]);
            if (MINIMUMS)
                y -= x->sums[s][n] * w->minimum[first + r][s];
            f[first + r][n] = y;
        }
    }
}

/* Unit by unit, for so many vectors of tokens. */
__attribute__((always_inline)) static inline void
add_units(const struct short_rows rows[VECTORS], const struct tile_rows *tile,
          const struct x_rows *x, const uint at_once, const uint vectors, const uint d,
          float16 (*f)[TOKEN_VECTORS])
{
    struct x_unit xu;
    struct rows_unit w;
#pragma unroll 1
    for (uint b = 0; b < x->units; b++) {
        turn_x(x, b, vectors, d, &xu);
        decode_rows(rows, tile, b, &w);
#pragma unroll 1
        for (uint r = 0; r < TILE_ROWS; r += at_once) {
#pragma unroll 1
            for (uint s = 0; s < STRETCHES; s++)
                add_stretch(&w, &xu, tile->zero[r / 16], r, s, at_once, vectors, d, f);
        }
    }
}

/* Lanes of a token added up: of token t lane t. */
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

/* Rows of vector v are rows[v]; x is `tokens` rows. */
static inline void
short_gemm(const struct short_rows rows[VECTORS], __global const int *x, uint tokens,
           float16 (*out)[VECTORS])
{
    const uint k_count = rows[0].w.k_count;
    const struct x_rows xs = {x, prepared_words(k_count, X_FORM), tokens,
                              (k_count + UNIT_COLUMNS - 1) / UNIT_COLUMNS, k_count};
    const uint d = tokens <= 4 ? 4 : tokens <= 8 ? 2 : 1, vectors = (tokens + 15) / 16;
    float16 f[TILE_ROWS][TOKEN_VECTORS];
    struct tile_rows tile;
    begin_rows(rows, &tile);
    for (uint r = 0; r < TILE_ROWS; r++)
        for (uint n = 0; n < TOKEN_VECTORS; n++)
            f[r][n] = 0;
    if (d == 4)
        add_units(rows, &tile, &xs, MOST_ROWS, 1, 4, f);
    else if (d == 2)
        add_units(rows, &tile, &xs, MOST_ROWS, 1, 2, f);
    else if (vectors == 1)
        add_units(rows, &tile, &xs, MOST_ROWS, 1, 1, f);
    else if (vectors == 2)
        add_units(rows, &tile, &xs, MOST_ROWS / 2, 2, 1, f);
    else
        add_units(rows, &tile, &xs, MOST_ROWS / 2, 3, 1, f);
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
