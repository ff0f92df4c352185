/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks, a row a lane, in integer products as the file has them (lane_rows.h). A
 * format says
 *
 *     LANE_K_<name>                              columns of a unit
 *     PLACE_<name>                               bytes that a row begins at a multiple of: the unit
 *                                                of places in lane_rows
 *     void <name>_add(rows, x, k, factor, sum)   what add_unit does
 *
 * Its rows are whole words: the host refuses others (primitives/matrix_engine.c).
 */

/* ---- 64 columns in two blocks of 2 + 16 or 2 + 32 bytes ---------------------------------- */

/* Values of 128 columns of two such pairs of blocks. Where the row ends with one pair, it comes
 * twice. */
static inline void
load_two_pairs(__global const STORAGE(SRC) * x, const bool both, const bool wide,
               float v[X_VALUES])
{
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        __global const STORAGE(SRC) *at = x + (both ? s : s % 2) * 32;
        if (wide)
            load_bytes(at, s % 2 ? 0 : 2, v + s * LANE_SLOTS);
        else
            load_pairs(at, 16, s % 2 ? 0 : 2, v + s * LANE_SLOTS);
    }
}

#ifdef FORMAT_q4_0
#define LANE_K_q4_0 128
#define PLACE_q4_0  4

/* q - 8: as a signed nibble where that costs no more than another, or later. */
#if DP4A
#define Q4      u4
#define Q4_FLIP 0u
#define Q4_LESS 8.0f
#else
#define Q4      i4
#define Q4_FLIP 0x88888888u
#define Q4_LESS 0.0f
#endif

static inline void
q4_0_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    const uint pairs = min((rows->w->k_count - k) / 64, 2u);
    float v[X_VALUES];
    struct activations a;
    load_two_pairs(x + k, pairs == 2, false, v);
    make_integers(v, &a);
#pragma unroll
    for (uint p = 0; p < 2; p++) {
        const uint q = 2 * p * LANE_SLOTS;
        const float scale = p < pairs ? factor : 0.0f;
        const float2 less =
            Q4_LESS > 0.0f
                ? Q4_LESS * (float2)(sum_of_x(&a, q, LANE_SLOTS, BOTH_PARTS),
                                     sum_of_x(&a, q + LANE_SLOTS, LANE_SLOTS, BOTH_PARTS))
                : 0.0f;
        const a_rows2 behind = byte_rows(a.q + q);
        const a_rows2 x0 = in_first_words(behind, 4), x1 = behind ^ x0;
        const a_rows2 x2 = byte_rows(a.q + q + LANE_SLOTS);
        const uint at = rows->words + (k / 64 + min(p, pairs - 1)) * 9;
#pragma unroll
        for (uint i = 0; i < ROW_BLOCKS; i++) {
            __global const uint *words =
                (__global const uint *)rows->w->data + (rows->word[i] + at);
            const uint4 w0 = vload4(0, words), w4 = vload4(1, words);
            const uint4 q0 = w0 ^ Q4_FLIP, q4 = w4 ^ Q4_FLIP;
            const uint4 q5 = (uint4)(q4.yzw, words[8] ^ Q4_FLIP);
            const nibble_sum first =
                FIRST_NIBBLES(Q4, x1, q4, NIBBLES(Q4, x0, q0, (nibble_sum)0));
            const nibble_sum second = NIBBLES(Q4, x2, q5, (nibble_sum)0);
            sum[i] += (halves(w0.x).x *
                           ((float)both_bytes(TOGETHER(Q4, first)) * a.scale - less.x) +
                       halves(w4.x).y *
                           ((float)both_bytes(TOGETHER(Q4, second)) * a.scale - less.y)) *
                      scale;
        }
    }
}
#endif

#ifdef FORMAT_q8_0
#define LANE_K_q8_0 128
#define PLACE_q8_0  4

static inline void
q8_0_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    const uint pairs = min((rows->w->k_count - k) / 64, 2u);
    float v[X_VALUES];
    struct activations a;
    load_two_pairs(x + k, pairs == 2, true, v);
    make_integers(v, &a);
#pragma unroll
    for (uint p = 0; p < 2; p++) {
        const float scale = p < pairs ? a.scale * factor : 0.0f;
        const a_rows2 behind = byte_rows(a.q + 2 * p * LANE_SLOTS);
        const a_rows2 x0 = in_first_words(behind, 2), x1 = behind ^ x0;
        const a_rows2 x2 = byte_rows(a.q + (2 * p + 1) * LANE_SLOTS);
        const uint at = rows->words + (k / 64 + min(p, pairs - 1)) * 17;
#pragma unroll
        for (uint i = 0; i < ROW_BLOCKS; i++) {
            __global const uint *words =
                (__global const uint *)rows->w->data + (rows->word[i] + at);
            const uint8 w0 = (uint8)(vload4(0, words), vload4(1, words));
            const uint8 w8 = (uint8)(vload4(2, words), vload4(3, words));
            const uint8 w9 = (uint8)(w8.s1234, w8.s567, words[16]);
            const int2 first = FIRST_BYTES(i8, x1, w8, mad_i8(x0, w0, (int2)0));
            const int2 second = mad_i8(x2, w9, (int2)0);
            sum[i] += (halves(w0.s0).x * (float)both_bytes(first) +
                       halves(w8.s0).y * (float)both_bytes(second)) *
                      scale;
        }
    }
}
#endif

/* ---- blocks of 256 columns --------------------------------------------------------------- */

/* The scales and minimums of Q4_K and Q5_K (k_scales.h), a byte each: sub-blocks 0 … 3, 4 … 7. */
struct k_bytes {
    uint2 scales, minimums;
};

static inline struct k_bytes
k_bytes_of(uint4 head)
{
    return (struct k_bytes){
        (uint2)(head.y & 0x3f3f3f3fu,
                (head.w & 0x0f0f0f0fu) | (head.y >> 2 & 0x30303030u)),
        (uint2)(head.z & 0x3f3f3f3fu,
                (head.w >> 4 & 0x0f0f0f0fu) | (head.z >> 2 & 0x30303030u))};
}

/* Half a block's x in steps: of 16 columns each of two runs of 32. What meets minimums are the sums
 * of the runs. */
struct half_x {
    apart_rows bytes[4];
    float scale, sum[4];
};

static inline void
load_half(__global const STORAGE(SRC) * x, struct half_x *h)
{
    float v[X_VALUES];
    struct activations a;
#if IS_HALF(SRC) && SG == 16
    const ushort8 runs = intel_sub_group_block_read_us8((__global const ushort *)x);
#pragma unroll
    for (uint s = 0; s < 8; s++)
        v[s / 4 * 4 + s % 2 * 2 + s / 2 % 2] = half_bits(runs[s]);
#else
#pragma unroll
    for (uint s = 0; s < 4; s++)
        load_pairs(x + s / 2 * 64 + s % 2 * 16, 32, 0, v + s * LANE_SLOTS);
#endif
    make_integers(v, &a);
    h->scale = a.scale;
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        h->bytes[s] = ROWS_APART(byte_rows(a.q + s * LANE_SLOTS));
        h->sum[s] = sum_of_x(&a, s / 2 * 2 * LANE_SLOTS, 2 * LANE_SLOTS, s % 2);
    }
}

#ifdef FORMAT_q4_k
#define LANE_K_q4_k 256
#define PLACE_q4_k  4

static inline void
q4_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct half_x h[2];
    load_half(x + k, &h[0]);
    load_half(x + k + X_COLUMNS, &h[1]);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        __global const uint *at = (__global const uint *)rows->w->data +
                                  (rows->word[i] + (rows->words + k / 256 * 36));
        const uint4 head = vload4(0, at);
        const struct k_bytes f = k_bytes_of(head);
        float total = 0.0f, less = 0.0f;
#pragma unroll
        for (uint c = 0; c < 4; c++) { /* 64 columns in 32 bytes */
            const struct half_x *of = &h[c / 2];
            const uint j = c % 2 * 2;
            const uchar4 s = as_uchar4(f.scales[c / 2]), m = as_uchar4(f.minimums[c / 2]);
            int4 dot = NIBBLES_APART(u4, of->bytes[j], vload4(1 + 2 * c, at), (int4)0);
            dot = NIBBLES_APART(u4, of->bytes[j + 1], vload4(2 + 2 * c, at), dot);
            dot = APART(u4, dot);
            total += ((float)s[j] * (float)both_bytes(dot.xy) +
                      (float)s[j + 1] * (float)both_bytes(dot.zw)) *
                     of->scale;
            less += (float)m[j] * of->sum[j] + (float)m[j + 1] * of->sum[j + 1];
        }
        const float2 d = halves(head.x);
        sum[i] += (d.x * total - d.y * less) * factor;
    }
}
#endif

/* n words from an even address on, which counts in units of two bytes; `reads` words of memory. */
static inline void
load_unaligned(__global const uchar *data, uint at, const uint n, const uint reads,
               uint *words)
{
    __global const uint *from = (__global const uint *)data + at / 2;
    const uint shift = at % 2 * 16, mask = at % 2 ? 0xffff0000u : 0;
    uint last = from[0];
#pragma unroll
    for (uint i = 0; i < n; i++) {
        const uint next = i + 1 < reads ? from[i + 1] : last;
        words[i] = last >> shift | (next << 16 & mask);
        last = next;
    }
}

#include "lane_k_blocks.h"

/* ---- numbers of nibbles ------------------------------------------------------------------ */

#ifdef FORMAT_mxfp4
#define LANE_K_mxfp4 128
#define PLACE_mxfp4  2

/* Twice the sizes of floats of 4 bits, as nibbles: 0 1 2 3 4 6 8 12, bit by bit. */
static inline uint4
fp4_sizes(uint4 v)
{
    const uint4 v1 = v << 1u, v2 = v << 2u, r1 = v >> 1u, r2 = v >> 2u;
    const uint4 eight = v1 & v2, four = v & (~v1 | v2), one = v & ~r2;
    const uint4 two = (v & ~r1) | (~v & r1 & v1);
    const uint4 high = (eight & 0x88888888u) | (four & 0x44444444u);
    const uint4 low = (two & 0x22222222u) | (one & 0x11111111u);
    return high | low;
}

/* Their products: those of all sizes less twice those of negative numbers. */
static inline int2
fp4_products(a_rows2 x, uint4 v)
{
    const uint4 size = fp4_sizes(v), sign = v >> 3u & 0x11111111u;
    const nibble_sum all = NIBBLES(u4, x, size, (nibble_sum)0);
    const nibble_sum less = NIBBLES(u4, x, size & ((sign << 4u) - sign), (nibble_sum)0);
    return TOGETHER(u4, all) - 2 * TOGETHER(u4, less);
}

static inline void
mxfp4_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
          float factor, float sum[ROW_BLOCKS])
{
    const uint pairs = min((rows->w->k_count - k) / 64, 2u);
    float v[X_VALUES];
    struct activations a;
#pragma unroll
    for (uint s = 0; s < 4; s++)
        load_pairs(x + k + (pairs == 2 ? s : s % 2) * 32, 16, 0, v + s * LANE_SLOTS);
    make_integers(v, &a);
#pragma unroll
    for (uint p = 0; p < 2; p++) {
        const float scale = p < pairs ? a.scale * factor : 0.0f;
        const a_rows2 x0 = byte_rows(a.q + 2 * p * LANE_SLOTS);
        const a_rows2 x1 = byte_rows(a.q + (2 * p + 1) * LANE_SLOTS);
        const uint at = rows->words + (k / 64 + min(p, pairs - 1)) * BYTES_mxfp4;
#pragma unroll
        for (uint i = 0; i < ROW_BLOCKS; i++) {
            uint w[9]; /* two blocks: of 1 + 16 bytes, of 17 + 1 + 16 */
            load_unaligned(rows->w->data, rows->word[i] + at, 9, 9, w);
            const uint4 w0 = (uint4)(w[0], w[1], w[2], w[3]), w1 = (uint4)(w0.yzw, w[4]);
            const uint4 w4 = (uint4)(w[4], w[5], w[6], w[7]), w5 = (uint4)(w4.yzw, w[8]);
            const int2 first = fp4_products(x0, w0 >> 8u | w1 << 24u);
            const int2 second = fp4_products(x1, w4 >> 16u | w5 << 16u);
            sum[i] += (mxfp4_factor(w[0] & 255) * (float)both_bytes(first) +
                       mxfp4_factor(w[4] >> 8 & 255) * (float)both_bytes(second)) *
                      scale;
        }
    }
}
#endif

/* ---- any of them ------------------------------------------------------------------------- */

static inline uint
unit_columns(const uint format)
{
#define LANE_COLUMNS(format) PASTE(LANE_K_, format)
    return BY_FORMAT(format, LANE_COLUMNS);
}

static inline void
find_row(const uint format, struct lane_rows *rows, uint i, ulong row)
{
#define LANE_WORD(format)                                                                \
    (uint)((row * (rows->w->view.x / PASTE(COLUMNS_, format)) +                          \
            rows->w->view.y / PASTE(COLUMNS_, format)) *                                 \
           PASTE(BYTES_, format) / PASTE(PLACE_, format))
    rows->word[i] = BY_FORMAT(format, LANE_WORD);
}

static inline void
find_expert(const uint format, struct lane_rows *rows, uint expert)
{
#define LANE_WORDS(format)                                                               \
    rows->w->view.x / PASTE(COLUMNS_, format) * PASTE(BYTES_, format) /                  \
        PASTE(PLACE_, format)
    rows->words = expert * (rows->w->view.z * (BY_FORMAT(format, LANE_WORDS)));
}

#define ADD_FORMAT(format) PASTE(format, _add)(rows, x, k, factor, sum)
static inline void
add_unit(const uint format, const struct lane_rows *rows, __global const STORAGE(SRC) * x,
         uint k, float factor, float sum[ROW_BLOCKS])
{
    if (FORMATS > 2 && format == 2)
        ADD_FORMAT(FORMAT2);
    else if (FORMATS > 1 && format == 1)
        ADD_FORMAT(FORMAT1);
    else
        ADD_FORMAT(FORMAT0);
}
