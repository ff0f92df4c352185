/* SPDX-License-Identifier: Apache-2.0
 *
 * 16 * VECTORS rows of weights times up to MOST_TOKENS rows of integers (prepared.h):
 *
 *     f[t][v][lane] = sum_k w[row 16 v + lane][k] x[t][k]
 *
 * Kernels define SHORTS 1 before they include anything.
 *
 * If bytes are multiplied, byte_gemm.h does it. Else it is done block by block: 16 rows are read as
 * the file has them, transposed so that a vector has one word of every row, and split into pairs of
 * 16-bit integers minus their zero points. These stay in the L1 cache while all tokens are
 * multiplied by them, whose words are broadcast. Sums are integers over a stretch of columns with
 * one scale, then floats.
 */
#include "planes.h"
#include "prepared.h"

#include "block_shorts.h"
#include "short_rows.h"
#include "turn.h"

#define X_FORM PLANES, SUM_K, X_KIND /* the form of rows of x */

/* Tokens that are multiplied at once: registers hold AT_ONCE * VECTORS sums. */
#ifdef __AVX512F__
#define AT_ONCE 6
#else
#define AT_ONCE 2
#endif
#define MOST_TOKENS 48 /* a multiple of AT_ONCE and of 16 */
#define PAIRS       (BLOCK / 2)
/* At most so many tokens are multiplied row by row (gemv_rows.h), which decodes each row once. */
#define FEW_BY_ROWS (X_BYTES ? 2 : TOKENS_AT_ONCE)

#if (GROUP || BLOCKS) && BYTE_TILES
#include "byte_gemm.h"
#elif GROUP || BLOCKS
/* A stretch is the part of a block with one scale: STRETCH_WORDS words and STRETCH_PLANES planes of
 * pairs. In blocks, planes are parts of halves (block_units.h), which may have their own scales. */
#if BLOCKS
#define STRETCH_WORDS  4
#define STRETCH_PLANES (FACTOR_K == 16 ? 2 : 4)
#else
#define STRETCH_WORDS  (GROUP < BLOCK ? GROUP / PLANES : 16)
#define STRETCH_PLANES (PLANES / 2)
#define MINIMUMS       0
#endif
#define PARTS     (PLANES / 2 / STRETCH_PLANES)
#define STRETCHES (16 / STRETCH_WORDS * PARTS)

/* A decoded block of 16 * VECTORS rows. */
struct unpacked {
    int16 words[PAIRS][VECTORS];
    float16 scales[STRETCHES][VECTORS], minimums[STRETCHES][VECTORS];
};

#if BLOCKS
/* Block b of 16 rows as vector `v` of an unpacked one. */
__attribute__((always_inline)) static inline void
unpack_format(const uint format, const struct short_rows *rows, uint b,
              struct unpacked *out, uint v)
{
    const ulong ahead = rows->ahead * blocks_step(format, &rows->w);
    const float weight = weight_factor(&rows->w, rows->first);
    const uint k = b * BLOCK, bytes = unit_bytes(format);
    const bool whole = k + BLOCK <= rows->w.k_count;
    uint16 words[2][16];
    float4 factors[2][16], minimums[2][16];
    for (uint r = 0; r < 16; r++) {
        __global const uchar *row =
            blocks_begin(format, &rows->w, min(rows->first + r, rows->last));
        struct unit u;
        for (uint i = 0; i < bytes; i += 64)
            prefetch_line(row + k / format_columns(format) * format_bytes(format) + i +
                          ahead);
        if (whole)
            unit_at(format, row, k, &u);
        else
            unit_of_pieces(format, row, k, rows->w.k_count, &u);
        for (uint h = 0; h < 2; h++) {
            words[h][r] = u.q[h];
            factors[h][r] = u.factor[h].s048c * weight;
        }
        minimums[0][r] = u.minimum.even * weight;
        minimums[1][r] = u.minimum.odd * weight;
    }
    turn_over(words[0]);
    turn_over(words[1]);
#pragma unroll
    for (uint part = 0; part < PARTS; part++) {
        float16 turned[4];
        turn_quads(factors[part], turned);
        for (uint i = 0; i < 4; i++)
            out->scales[i * PARTS + part][v] = turned[i];
        if (MINIMUMS)
            turn_quads(minimums[part], turned);
        for (uint i = 0; MINIMUMS && i < 4; i++)
            out->minimums[i * PARTS + part][v] = turned[i];
    }
#pragma unroll
    for (uint i = 0; i < PAIRS; i++)
        out->words[i][v] = byte_pairs(words[i / 32][i % 16], i / 16 % 2);
}

/* Returns the zero point of the rows' integers. */
static inline int
rows_zero(const struct short_rows *rows)
{
    return format_zero(FORMATS > 1 && rows->w.format == 1 ? 1 : 0);
}

static inline void
unpack_rows(const struct short_rows *rows, uint b, struct unpacked *out, uint v)
{
    if (FORMATS > 1 && rows->w.format == 1)
        unpack_format(1, rows, b, out, v);
    else
        unpack_format(0, rows, b, out, v);
}
#else
static inline int
rows_zero(const struct short_rows *rows)
{
    return 0; /* unpack_rows subtracts the zero points */
}

/* Reads block b of the rows n[], and prefetches the same block of the rows of the next call. */
static inline void
read_block(const struct short_rows *rows, const ulong n[16], uint b, uint16 words[16])
{
    const uint row_step = rows->w.view.x / PLANES * 4; /* bytes */
    if ((b + 1) * BLOCK <= rows->w.k_count) {
#pragma unroll
        for (uint r = 0; r < 16; r++) {
            __global const uchar *p = row_bytes(&rows->w, n[r]) + b * 64;
            words[r] = ((__global const loose_uint16 *)p)->v ^ FLIP;
            prefetch_line(p + rows->ahead * row_step);
        }
        return;
    }
    for (uint r = 0; r < 16; r++)
        words[r] = block_words(row_bytes(&rows->w, n[r]), b, rows->w.k_count);
}

/* Block b of 16 rows as vector `v` of an unpacked one. */
static inline void
unpack_rows(const struct short_rows *rows, uint b, struct unpacked *out, uint v)
{
    const uint groups = group_count(&rows->w);
    uint16 words[16];
    ulong n[16];
#pragma unroll
    for (uint r = 0; r < 16; r++)
        n[r] = min(rows->first + r, rows->last);
    read_block(rows, n, b, words);
    turn_over(words);
#pragma unroll
    for (uint s = 0; s < STRETCHES; s++) {
        const uint g = min((b * BLOCK + s * STRETCH_WORDS * PLANES) / GROUP, groups - 1);
        float scales[16];
        uint zeros[16];
        for (uint r = 0; r < 16; r++) {
            scales[r] = weight_scale(&rows->w, n[r], g);
            zeros[r] = (uint)(int)(weight_zero_point(&rows->w, n[r], g) + OFFSET);
        }
        const uint16 z = vload16(0, zeros);
        const short32 zero_pairs = AS_SHORTS((z & 0xffffu) | z << 16u);
        out->scales[s][v] = vload16(0, scales);
#pragma unroll
        for (uint i = s * STRETCH_WORDS; i < (s + 1) * STRETCH_WORDS; i++) {
#pragma unroll
            for (uint j = 0; j < PLANES / 2; j++) {
                const uint16 q = words[i] >> (j * (32 / PLANES)) &
                                 (PLANES == 8 ? 0xf000fu : 0xff00ffu);
                out->words[j * 16 + i][v] =
                    __builtin_astype(AS_SHORTS(q) - zero_pairs, int16);
            }
        }
    }
}
#endif

/* Adds the products of `count` words of `tokens` rows. Always inlined, so that the sums stay in
 * registers. */
__attribute__((always_inline)) static inline void
multiply_words(const int16 (*w)[VECTORS], __global const int *x, ulong row_words,
               uint count, const uint tokens, int16 (*sum)[VECTORS])
{
#pragma unroll 4
    for (uint p = 0; p < count; p++) {
#pragma unroll
        for (uint t = 0; t < tokens; t++) {
            const int16 a = x[t * row_words + p];
#pragma unroll
            for (uint v = 0; v < VECTORS; v++)
                sum[t][v] = add_pairs(sum[t][v], w[p][v], a);
        }
    }
}

#if BLOCKS
/* Returns the (negative) sum of x over stretch s, which zero points are multiplied by; `less` is
 * that of the token's row (shorts.h). */
static inline int
stretch_less(__global const int *less, uint s)
{
    return PARTS == 2 ? less[s] : less[2 * s] + less[2 * s + 1];
}

/* Adds the products with plane `plane` of stretch s of a block of x. */
__attribute__((always_inline)) static inline void
multiply_plane(const struct unpacked *w, __global const int *x, ulong row_words, uint s,
               const uint plane, const uint tokens, int16 (*sum)[VECTORS])
{
    const uint first = s / PARTS * 4;
    for (uint h = PARTS == 2 ? s % 2 : 0; h < (PARTS == 2 ? s % 2 + 1 : 2); h++)
        multiply_words(w->words + (2 * h + plane) * 16 + first,
                       x + (2 * h + plane) * 16 + first, row_words, 4, tokens, sum);
}

/* Computes the integer sums of stretch s of a block of x, whose sums for zero points are at
 * `less`. */
__attribute__((always_inline)) static inline void
sum_stretch(const struct unpacked *w, const int zeros[VECTORS], __global const int *x,
            __global const int *less, ulong row_words, uint s, const uint tokens,
            int16 (*sum)[VECTORS])
{
#pragma unroll
    for (uint t = 0; t < tokens; t++)
#pragma unroll
        for (uint v = 0; v < VECTORS; v++)
            sum[t][v] = 0;
    multiply_plane(w, x, row_words, s, 0, tokens, sum);
#pragma unroll
    for (uint t = 0; t < tokens; t++) {
        const int l = stretch_less(less + t * row_words, s);
#pragma unroll
        for (uint v = 0; v < VECTORS; v++)
            sum[t][v] += l * zeros[v];
    }
    multiply_plane(w, x, row_words, s, 1, tokens, sum);
}
#else
__attribute__((always_inline)) static inline void
sum_stretch(const struct unpacked *w, const int zeros[VECTORS], __global const int *x,
            __global const int *less, ulong row_words, uint s, const uint tokens,
            int16 (*sum)[VECTORS])
{
#pragma unroll
    for (uint t = 0; t < tokens; t++)
        for (uint v = 0; v < VECTORS; v++)
            sum[t][v] = 0;
#pragma unroll 1
    for (uint j = 0; j < STRETCH_PLANES; j++) {
        const uint first = j * 16 + s * STRETCH_WORDS;
        multiply_words(w->words + first, x + first, row_words, STRETCH_WORDS, tokens, sum);
    }
}
#endif

/* Returns the sum of x over stretch s of block b: one or two of the sums of a row, whose last index
 * is `last`. Behind that, minimums are 0. */
static inline float
stretch_sum(__global const float *sums, uint b, uint s, uint last)
{
    const uint n = 8 / STRETCHES, first = b * 8 + s * n;
    const float sum = sums[min(first, last)];
    return n == 1 ? sum : sum + sums[min(first + 1, last)];
}

/* Adds block b's products with `tokens` rows of x; `last` is the index of a row's last sum. */
__attribute__((always_inline)) static inline void
add_products(const struct unpacked *w, const int zeros[VECTORS], __global const int *x,
             ulong row_words, uint b, uint blocks, uint last, const uint tokens,
             float16 (*f)[VECTORS])
{
#pragma unroll 1
    for (uint s = 0; s < STRETCHES; s++) {
        int16 sum[AT_ONCE][VECTORS];
        sum_stretch(w, zeros, x + b * PAIRS, x + blocks * (PAIRS + 1) + b * 8, row_words, s,
                    tokens, sum);
#pragma unroll
        for (uint t = 0; t < tokens; t++) {
            __global const float *row =
                (__global const float *)(x + t * row_words + blocks * PAIRS);
            const float factor = row[b];
            const float x_sum = MINIMUMS ? stretch_sum(row + 9 * blocks, b, s, last) : 0.0f;
#pragma unroll
            for (uint v = 0; v < VECTORS; v++) {
                f[t][v] += convert_float16(sum[t][v]) * (w->scales[s][v] * factor);
                if (MINIMUMS)
                    f[t][v] -= w->minimums[s][v] * x_sum;
            }
        }
    }
}

/* Computes the products of the rows of all vectors, rows[v] being those of vector v, with `tokens`
 * rows of x. For an odd number of tokens it reads one more row of x. */
static inline void
short_gemm(const struct short_rows rows[VECTORS], __global const int *x, uint tokens,
           float16 (*f)[VECTORS])
{
    const uint blocks = (rows[0].w.k_count + BLOCK - 1) / BLOCK;
    const uint last = rows[0].w.k_count / SUM_K - 1;
    const ulong row_words = prepared_words(rows[0].w.k_count, X_FORM);
    struct unpacked w;
    int zeros[VECTORS];
    for (uint v = 0; v < VECTORS; v++)
        zeros[v] = rows_zero(&rows[v]);
    for (uint t = 0; t < (tokens + 1) / 2 * 2; t++)
        for (uint v = 0; v < VECTORS; v++)
            f[t][v] = 0;
#pragma unroll 1
    for (uint b = 0; b < blocks; b++) {
#pragma unroll 1
        for (uint v = 0; v < VECTORS; v++)
            unpack_rows(&rows[v], b, &w, v);
        uint t = 0;
#pragma unroll 1
        for (; t + AT_ONCE <= tokens; t += AT_ONCE)
            add_products(&w, zeros, x + t * row_words, row_words, b, blocks, last,
                         AT_ONCE, f + t);
        if (t + 4 < tokens)
            add_products(&w, zeros, x + t * row_words, row_words, b, blocks, last, 6, f + t);
        else if (t + 2 < tokens)
            add_products(&w, zeros, x + t * row_words, row_words, b, blocks, last, 4, f + t);
        else if (t < tokens)
            add_products(&w, zeros, x + t * row_words, row_words, b, blocks, last, 2, f + t);
    }
}
#endif

/* Returns the tokens of the next pass if `left` tokens remain: the fewest passes, of equal length.
 * Tiles of bytes have 16 tokens in lanes. */
static inline uint
tokens_of_pass(uint left)
{
    const uint unit = BYTE_TILES && left > 16 ? 16 : 2;
    const uint passes = (left + MOST_TOKENS - 1) / MOST_TOKENS;
    return ((left + passes - 1) / passes + unit - 1) / unit * unit;
}
