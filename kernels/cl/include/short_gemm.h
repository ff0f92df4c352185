/* SPDX-License-Identifier: Apache-2.0
 *
 * 16 * VECTORS rows of weights times up to MOST_TOKENS rows of 16-bit activations (prepared.h),
 * weights' rows in lanes:
 *
 *     f[t][v][lane] = sum_k w[row 16 v + lane][k] x[t][k]
 *
 * Kernels define SHORTS 1 before they include anything.
 *
 * Block by block: 16 rows are read as the file has them, turned over so that a vector holds one
 * word of every row, and fall apart into pairs of 16-bit integers less their zero points. These
 * stay in the L1 cache while the tokens pass, whose pairs are broadcast: one instruction makes
 * 32 products. Sums are integers over a stretch of equal scale, then floats.
 */
#include "planes.h"
#include "prepared.h"

#include "block_shorts.h"

/* Rows of x; the sums of groups are for the minimums of blocks. */
#define X_FORM PLANES, (BLOCKS ? SUM_K : 0), X_KIND

#define VECTORS     4
#define AT_ONCE     6  /* tokens whose sums are in registers: AT_ONCE * VECTORS of them */
#define MOST_TOKENS 48 /* a multiple of AT_ONCE */
#define PAIRS       (BLOCK / 2)

#if GROUP || BLOCKS
/* Stretches of a block whose scale is the same: so many, each of words and planes of pairs. In
 * blocks, planes are parts of halves (block_units.h), which may have scales of their own. */
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

/* Which stored rows of which weight: from `first` on; those behind `last` are `last`. */
struct short_rows {
    struct weight w;
    ulong first, last;
    uint ahead; /* rows from these to those of the next call */
};

/* A block of 16 * VECTORS rows. */
struct unpacked {
    int16 pairs[PAIRS][VECTORS];
    float16 scales[STRETCHES][VECTORS], minimums[STRETCHES][VECTORS];
};

/* v[r].s[i] -> v[i].s[r]: interleaving vectors 8 apart moves one bit of the row's number behind
 * the column's; four times. */
__attribute__((always_inline)) static inline void
turn_over(uint16 v[16])
{
#pragma unroll
    for (uint step = 0; step < 4; step++) {
        uint16 t[16];
#pragma unroll
        for (uint i = 0; i < 8; i++) {
            t[2 * i].even = v[i].lo;
            t[2 * i].odd = v[i + 8].lo;
            t[2 * i + 1].even = v[i].hi;
            t[2 * i + 1].odd = v[i + 8].hi;
        }
#pragma unroll
        for (uint i = 0; i < 16; i++)
            v[i] = t[i];
    }
}

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
    uint16 words[2][16], factors[2][16], minimums[16];
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
            factors[h][r] = as_uint16(u.factor[h] * weight);
        }
        minimums[r] = as_uint16((float16)(u.minimum * weight, (float8)0));
    }
    turn_over(words[0]);
    turn_over(words[1]);
    turn_over(factors[0]);
    if (PARTS == 2)
        turn_over(factors[1]);
    if (MINIMUMS)
        turn_over(minimums);
#pragma unroll
    for (uint s = 0; s < STRETCHES; s++) {
        out->scales[s][v] = as_float16(factors[s % PARTS][s / PARTS * 4]);
        out->minimums[s][v] = as_float16(minimums[s * 8 / STRETCHES]);
    }
#pragma unroll
    for (uint i = 0; i < 64; i++)
        out->pairs[i][v] = byte_pairs(as_int16(words[i / 32][i % 16]), i / 16 % 2);
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
/* Block b of the rows n; the one behind it is on its way meanwhile. */
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
                out->pairs[j * 16 + i][v] =
                    __builtin_astype(AS_SHORTS(q) - zero_pairs, int16);
            }
        }
    }
}
#endif

/* Adds the products of pairs first ... end - 1 of `tokens` rows. Inlined by force so that the
 * sums are registers. */
__attribute__((always_inline)) static inline void
multiply_pairs(const struct unpacked *w, __global const int *pairs, ulong row_words,
               uint first, uint end, const uint tokens, int16 (*sum)[VECTORS])
{
#pragma unroll 1
    for (uint p = first; p < end; p++) {
#pragma unroll
        for (uint t = 0; t < tokens; t++) {
            const int16 a = pairs[t * row_words + p];
#pragma unroll
            for (uint v = 0; v < VECTORS; v++)
                sum[t][v] = add_pairs(sum[t][v], w->pairs[p][v], a);
        }
    }
}

/* The sum of x over stretch s of block b: one or two of the sums of a row, of which `last` is the
 * last. Behind that, minimums are 0. */
static inline float
stretch_sum(__global const float *sums, uint b, uint s, uint last)
{
    const uint n = 8 / STRETCHES, first = b * 8 + s * n;
    const float sum = sums[min(first, last)];
    return n == 1 ? sum : sum + sums[min(first + 1, last)];
}

/* Adds block b's products with `tokens` rows of x, whose last sum is `last`. */
__attribute__((always_inline)) static inline void
add_products(const struct unpacked *w, __global const int *x, ulong row_words, uint b,
             uint blocks, uint last, const uint tokens, float16 (*f)[VECTORS])
{
#pragma unroll 1
    for (uint s = 0; s < STRETCHES; s++) {
        int16 sum[AT_ONCE][VECTORS];
#pragma unroll
        for (uint t = 0; t < tokens; t++)
            for (uint v = 0; v < VECTORS; v++)
                sum[t][v] = 0;
#pragma unroll 1
        for (uint j = 0; j < STRETCH_PLANES; j++) {
            const uint first =
                (s % PARTS * STRETCH_PLANES + j) * 16 + s / PARTS * STRETCH_WORDS;
            multiply_pairs(w, x + b * PAIRS, row_words, first, first + STRETCH_WORDS,
                           tokens, sum);
        }
#pragma unroll
        for (uint t = 0; t < tokens; t++) {
            __global const float *row =
                (__global const float *)(x + t * row_words + blocks * PAIRS);
            const float factor = row[b];
            const float x_sum = MINIMUMS ? stretch_sum(row + blocks, b, s, last) : 0.0f;
#pragma unroll
            for (uint v = 0; v < VECTORS; v++) {
                f[t][v] += convert_float16(sum[t][v]) * (w->scales[s][v] * factor);
                if (MINIMUMS)
                    f[t][v] -= w->minimums[s][v] * x_sum;
            }
        }
    }
}

/* Rows of vector v are rows[v]; x is `tokens` rows, of which an odd number reads one more. */
static inline void
short_gemm(const struct short_rows rows[VECTORS], __global const int *x, uint tokens,
           float16 (*f)[VECTORS])
{
    const uint blocks = (rows[0].w.k_count + BLOCK - 1) / BLOCK;
    const uint last = rows[0].w.k_count / SUM_K - 1;
    const ulong row_words = prepared_words(rows[0].w.k_count, X_FORM);
    struct unpacked w;
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
            add_products(&w, x + t * row_words, row_words, b, blocks, last, AT_ONCE,
                         f + t);
        if (t + 4 < tokens)
            add_products(&w, x + t * row_words, row_words, b, blocks, last, 6, f + t);
        else if (t + 2 < tokens)
            add_products(&w, x + t * row_words, row_words, b, blocks, last, 4, f + t);
        else if (t < tokens)
            add_products(&w, x + t * row_words, row_words, b, blocks, last, 2, f + t);
    }
}
#endif

/* Tokens of the next pass, when `left` are: as few passes as can be, of equal length. */
static inline uint
tokens_of_pass(uint left)
{
    const uint passes = (left + MOST_TOKENS - 1) / MOST_TOKENS;
    return ((left + passes - 1) / passes + 1) / 2 * 2;
}

#ifdef DST
/* The first `n` (at most 16 * VECTORS) rows of one token from element `at` of y on. */
static inline void
put_rows(const float16 f[VECTORS], uint n, __global const float *bias,
         __global STORAGE(DST) * y, ulong at)
{
    for (uint v = 0; v < VECTORS && v * 16 < n; v++) {
        if (n - v * 16 >= 16) {
            STORE16(DST, y, at + v * 16, bias ? f[v] + vload16(v, bias) : f[v]);
            continue;
        }
        float lanes[16];
        vstore16(f[v], 0, lanes);
        for (uint i = 0; v * 16 + i < n; i++)
            STORE(DST, y, at + v * 16 + i, lanes[i] + (bias ? bias[v * 16 + i] : 0.0f));
    }
}
#endif
