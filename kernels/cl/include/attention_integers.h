/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts rows of a KV cache of type i8 or u4 to 14-bit integers with one scale a row
 * (attention_shorts.h): each element is multiplied by its share, the ratio of its block's scale to
 * the row's largest scale.
 *
 * Rows are read in place, 16 bytes of each of four rows at once (a quad): 128-bit lane r of a
 * vector has row 4 r + a of 16 rows, a = 0 to 3.
 *
 *   find_shares  computes the scales of TILE_KEYS rows and the shares of their blocks
 *   SHORTS_T     elements [d, d + QUAD_DIMS) of a quad of type T in four vectors, eight of each row
 *                in each: the even ones of a block, its odd ones, then those of the next block
 */
/* largest magnitude of the integers of K, V and weights; i8 also gives -8192 */
#define MOST_SHORT  8191.0f
#define QUADS       (TILE_KEYS / 4)
#define QUAD_DIMS   32
#define LONGEST_ROW (D > DV ? D : DV)

/* The 32 levels of u4 as integers: for each number 0 to 15 its level in the first set, then in the
 * second. */
#define UNIT_LEVEL (11354.578125f / MOST_SHORT) /* 15.25 (15.25^2 + 512) is the largest */
#define INTEGER_LEVEL(n)                                                                 \
    (short)((n) * ((n) * (n) + 512.0f) / UNIT_LEVEL + ((n) < 0.0f ? -0.5f : 0.5f))
#define LEVELS_1(n) INTEGER_LEVEL((n)-0.25f), INTEGER_LEVEL((n) + 0.25f)
#define LEVELS_2(n) LEVELS_1(n), LEVELS_1((n) + 2.0f)
#define LEVELS_4(n) LEVELS_2(n), LEVELS_2((n) + 4.0f)
#define LEVELS_8(n) LEVELS_4(n), LEVELS_4((n) + 8.0f)

/* MOST_SHARE is the share of the row's largest scale: 256 q (i8), or a level (u4), is multiplied by
 * a share and divided by 2^15. FACTOR is the scale of a row's integers in units of its largest
 * block scale. */
#define MOST_SHARE_i8 MOST_SHORT
#define MOST_SHARE_u4 32766.0f
#define FACTOR_i8     (128.0f / MOST_SHARE_i8)
#define FACTOR_u4     (32768.0f / MOST_SHARE_u4 * UNIT_LEVEL)

/* Words at any address, aligned or not. */
typedef struct __attribute__((packed)) {
    uint v;
} loose_uint;
typedef struct __attribute__((packed)) {
    uint4 v;
} loose_uint4;

/* Returns for each 128-bit lane: byte i is byte from[i] % 16 of that lane of v, or 0 if from[i] is
 * above 127. */
static inline uint16
in_lanes(uint16 v, uint16 from)
{
    typedef char bytes __attribute__((vector_size(64)));
    return __builtin_astype(__builtin_ia32_pshufb512(__builtin_astype(v, bytes),
                                                     __builtin_astype(from, bytes)),
                            uint16);
}

static inline shorts
multiply_high(uint16 a, uint16 b)
{
    return __builtin_ia32_pmulhrsw512(__builtin_astype(a, shorts),
                                      __builtin_astype(b, shorts));
}

/* Reads the scale bytes of 16 rows: all[c] has those of blocks [4 c, 4 c + 4) of each row. Rows of
 * one page are mostly contiguous, which is faster. */
__attribute__((always_inline)) static inline void
read_scales(const struct cached *row, const uint n, uint16 all[LONGEST_ROW / 64])
{
#define FOUR_OF(j) ((__global const loose_uint *)(row[j].scales + 4 * c))->v
    __global const loose_uint16 *first = (__global const loose_uint16 *)row[0].scales;
    const bool together = row[15].scales - row[0].scales == 15 * (n / CACHE_BLOCK);
    if (together && n == 64)
        all[0] = first->v;
    else if (together && n == 128) {
        const uint16 a = first[0].v, b = first[1].v;
        all[0] = (uint16)(a.even, b.even);
        all[1] = (uint16)(a.odd, b.odd);
    } else
        for (uint c = 0; c < n / 64; c++)
            all[c] = (uint16)(FOUR_OF(0), FOUR_OF(1), FOUR_OF(2), FOUR_OF(3), FOUR_OF(4),
                              FOUR_OF(5), FOUR_OF(6), FOUR_OF(7), FOUR_OF(8), FOUR_OF(9),
                              FOUR_OF(10), FOUR_OF(11), FOUR_OF(12), FOUR_OF(13),
                              FOUR_OF(14), FOUR_OF(15));
}

static inline uint16
larger_of(uint16 a, uint16 b)
{
    return a > b ? a : b;
}

/* Returns scale_of of each e. */
static inline float16
scales_of(uint16 e, uint first)
{
    return as_float16((e + first) << 20) - as_float(first << 20);
}

/* Sets factor[] to the scales of the integers of TILE_KEYS rows of n elements, and shares: for each
 * 64 elements and each quad, four words in each 128-bit lane, one for each block: the ratio of the
 * block's scale to the row's largest. For u4 the lowest bit says which set of levels the block
 * has. */
__attribute__((always_inline)) static inline void
find_shares(const struct cached *row, const uint n, const bool is_u4, uint16 *shares,
            float *factor)
{
    const uint16 word = (uint16)(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    const uint first = is_u4 ? FIRST_SCALE_u4 : FIRST_SCALE_i8;
    const float most_share = is_u4 ? MOST_SHARE_u4 : MOST_SHARE_i8;
    for (uint part = 0; part < TILE_KEYS / 16; part++) {
        uint16 all[LONGEST_ROW / 64], most = 0;
        read_scales(row + 16 * part, n, all);
#pragma unroll
        for (uint c = 0; c < n / 64; c++) {
            const uint16 e = all[c];
            most = larger_of(most, larger_of(larger_of(e & 255, e >> 8 & 255),
                                             larger_of(e >> 16 & 255, e >> 24)));
        }
        const float16 whole = scales_of(is_u4 ? most >> 1 : most, first);
        const float16 inverse = whole > 0.0f ? most_share / whole : (float16)0.0f;
        *AT16(factor + 16 * part) = whole * (is_u4 ? FACTOR_u4 : FACTOR_i8);
#pragma unroll
        for (uint c = 0; c < n / 64; c++) {
#pragma unroll
            for (uint a = 0; a < 4; a++) {
                const uint16 e = in_lanes(all[c], word + (0x80808000 + 4 * a));
                const uint16 of_row =
                    in_lanes(as_uint16(inverse), (uint16)(0x03020100 + 0x04040404 * a));
                const uint16 share = as_uint16(
                    scales_of(is_u4 ? e >> 1 : e, first) * as_float16(of_row) + 0x1p23f);
                shares[c * QUADS + part * 4 + a] =
                    is_u4 ? (share & ~1u) | (e & 1) : share;
            }
        }
    }
}

/* Vectors of the shares of n elements, plus one, because share_of reads behind the last. */
#define SHARE_VECTORS(n) ((n) / 64 * QUADS + 1)

/* Returns the share of block b (of four) in all words of its lane. */
static inline uint16
share_of(const uint16 *shares, uint b)
{
    return in_lanes(((const loose_uint16 *)((const uint *)shares + b))->v,
                    (uint16)0x01000100);
}

/* ---- elements ----------------------------------------------------------------------- */

/* Returns 16 bytes each of the rows 0, 4, 8, 12. */
static inline uint16
read_quad(const struct cached *row, uint at)
{
#define SIXTEEN_OF(j) ((__global const loose_uint4 *)(row[j].values + at))->v
    return (uint16)(SIXTEEN_OF(0), SIXTEEN_OF(4), SIXTEEN_OF(8), SIXTEEN_OF(12));
}

__attribute__((always_inline)) static inline void
SHORTS_i8(const struct cached *row, uint d, const uint16 *shares, shorts out[4])
{
#pragma unroll
    for (uint b = 0; b < 2; b++) {
        const uint16 x = read_quad(row, d + 16 * b);
        const uint16 share = share_of(shares, d % 64 / 16 + b);
        out[2 * b] = multiply_high(
            __builtin_astype(__builtin_astype(x, shorts) << (short)8, uint16), share);
        out[2 * b + 1] = multiply_high(x & 0xff00ff00, share);
    }
}

__attribute__((always_inline)) static inline void
SHORTS_u4(const struct cached *row, uint d, const uint16 *shares, shorts out[4])
{
    const shorts levels = {LEVELS_8(-15.0f), LEVELS_8(1.0f)};
    const uint16 x = read_quad(row, d / 2);
    /* the 4-bit numbers, in bits 1 to 4 of each 16 */
    const uint16 number[] = {x << 1, x >> 7, x >> 3, x >> 11};
#pragma unroll
    for (uint b = 0; b < 2; b++) {
        const uint16 share = share_of(shares, d % 64 / 16 + b);
#pragma unroll
        for (uint odd = 0; odd < 2; odd++) {
            const uint16 q = (number[2 * b + odd] & 0x001e001e) | (share & ~0x001e001eu);
            const shorts level =
                __builtin_ia32_permvarhi512(levels, __builtin_astype(q, shorts));
            out[2 * b + odd] = multiply_high(__builtin_astype(level, uint16), share);
        }
    }
}
