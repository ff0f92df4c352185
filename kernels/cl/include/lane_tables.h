/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks whose nibbles are indices of a table of numbers (lane_blocks.h). Integer products take
 * nibbles, so the numbers are composed of these: the stored ones, some that logic computes for
 * eight at a time, and the topmost bits. A table in local memory would take fewer instructions, but
 * one look-up for each byte of weights, with bank conflicts (docs/intel_gpu.md).
 */

#include "nibbles.h"

/* The topmost bits of eight nibbles: 8 if set, else 0. */
#define TOPMOST(v) ((v)&0x88888888u)

/* ---- floats of 4 bits -------------------------------------------------------------------- */

#if defined(FORMAT_mxfp4) || defined(FORMAT_nvfp4) || defined(CODES)
/* Returns twice the magnitudes (0 1 2 3 4 6 8 12) of eight floats: the stored three bits, plus
 * their lowest two bits again from 4 on, plus 2 for 7. */
static inline uint4
fp4_sizes(uint4 v)
{
    const uint4 large = v & 0x44444444u, again = v & (large - (large >> 2));
    return (v & 0x77777777u) + again + (again & again << 1u);
}

/* Returns the magnitudes of the negative floats, 0 for the others. */
static inline uint4
fp4_negative(uint4 v, uint4 sizes)
{
    const uint4 signs = TOPMOST(v);
    return sizes & (signs | (signs - (signs >> 3)));
}

/* Returns twice the products of such floats with x. */
static inline float
fp4_products(a_rows2 x, uint4 v)
{
    const uint4 sizes = fp4_sizes(v);
    const nibble_sum all = NIBBLES(u4, x, sizes, (nibble_sum)0);
    const nibble_sum negative = NIBBLES(u4, x, fp4_negative(v, sizes), (nibble_sum)0);
    return (float)both_bytes(TOGETHER(u4, all - negative - negative));
}
#endif

#ifdef FORMAT_mxfp4
#define LANE_K_mxfp4 128
#define PLACE_mxfp4  2

/* Returns 2^(e - 127); e is 8 bits of a word from bit `shift` on. */
static inline float
power_at(uint word, uint shift)
{
    return as_float(max(rotate(word, 23 - shift) & 0x7f800000u, 0x400000u));
}

/* Returns the products of two blocks of 1 + 16 bytes, from half word `at` of the data on. */
static inline float
mxfp4_pair(const struct pair_x *h, __global const uchar *data, uint at)
{
    const uint odd = at % 2 * 16;
    uint w[9], q[8];
#pragma unroll
    for (uint i = 0; i < 9; i++)
        w[i] = ((__global const uint *)data + at / 2)[i];
    realign(w, odd + 8, 4, q);
    realign(w + 4, odd + 16, 4, q + 4);
    return (power_at(w[0], odd) * fp4_products(h->rows[0], vload4(0, q)) +
            power_at(w[4], odd + 8) * fp4_products(h->rows[1], vload4(1, q))) *
           (h->scale * 0.5f);
}
PAIRS_ADD(mxfp4, 16, 0, 0)
#endif

#ifdef FORMAT_nvfp4
#define LANE_K_nvfp4 128
#define PLACE_nvfp4  4

/* Returns twice the products of the first and of the last 16 columns. */
static inline float2
nvfp4_halves(a_rows2 x, uint4 v)
{
    const apart_rows halves_of_x = ROW_HALVES(x);
    const uint4 sizes = fp4_sizes(v);
    const int4 dot = NIBBLE_HALVES(u4, halves_of_x, sizes) -
                     2 * NIBBLE_HALVES(u4, halves_of_x, fp4_negative(v, sizes));
    return (float2)((float)both_bytes(dot.xy), (float)both_bytes(dot.zw));
}

/* Returns the products of a block of 64 columns. Its four scales have 7 bits, which as bits of
 * halves are 2^-8 times their value; all bits set mean 0. */
static inline float
nvfp4_pair(const struct pair_x *h, __global const uchar *data, uint at)
{
    __global const uint *words = (__global const uint *)data + at;
    const uint factors = words[0] & 0x7f7f7f7fu;
    const uint full = (factors + 0x01010101u) & 0x80808080u;
    const uint d = factors & ~(full - (full >> 7));
    const float2 even = halves((d & 0x007f007fu) << 7),
                 odd = halves(d >> 1 & 0x3f803f80u);
    const float2 first = nvfp4_halves(h->rows[0], vload4(0, words + 1));
    const float2 second = nvfp4_halves(h->rows[1], vload4(0, words + 5));
    return (even.x * first.x + odd.x * first.y + even.y * second.x + odd.y * second.y) *
           (h->scale * 128.0f);
}
PAIRS_ADD(nvfp4, 8, 0, 0)
#endif

/* ---- the numbers of IQ4 ------------------------------------------------------------------ */

#if defined(FORMAT_iq4_nl) || defined(FORMAT_iq4_xs)
/* Returns the products of the numbers with x, times `scale`; `sum` is the sum of x. */
static inline float
iq4_products(a_rows2 x, float sum, float scale, uint4 v)
{
    const uint4 r = iq4_nibbles(v);
#if DP4A
    const uint4 low = iq4_bytes(v << 4, r), high = iq4_bytes(v, r >> 4);
    const uint8 bytes =
        (uint8)(low.x, high.x, low.y, high.y, low.z, high.z, low.w, high.w);
    return (float)both_bytes(mad_u8(x, bytes, (int2)0)) * scale - 127.0f * sum;
#else
    const int2 linear = mad_u4(x, v, (int2)0), all = mad_u4(x, r, linear << 4);
    const int2 high = mad_u4(x, TOPMOST(v), (int2)0);
    return ((float)both_bytes(all) - 1.5f * (float)both_bytes(high)) * scale -
           127.0f * sum;
#endif
}
#endif

#ifdef FORMAT_iq4_nl
#define LANE_K_iq4_nl 128
#define PLACE_iq4_nl  4

static inline float
iq4_nl_pair(const struct pair_x *h, __global const uchar *data, uint at)
{
    __global const uint *words = (__global const uint *)data + at;
    uint w[5], q[4];
#pragma unroll
    for (uint i = 0; i < 5; i++)
        w[i] = words[i];
    realign(w, 16, 4, q);
    return halves(w[0]).x * iq4_products(h->rows[0], h->sum[0], h->scale, vload4(0, q)) +
           halves(w[4]).y *
               iq4_products(h->rows[1], h->sum[1], h->scale, vload4(0, words + 5));
}
PAIRS_ADD(iq4_nl, 16, 0, PAIR_SUMS)
#endif

#ifdef FORMAT_iq4_xs
#define LANE_K_iq4_xs 256
#define PLACE_iq4_xs  4

static inline void
iq4_xs_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
           float factor, float sum[ROW_BLOCKS])
{
    struct pair_x h[4];
    load_two_pairs(x + k, true, 16, 0, PAIR_SUMS, h);
    load_two_pairs(x + k + X_COLUMNS, true, 16, 0, PAIR_SUMS, h + 2);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        __global const uint *at = (__global const uint *)rows->w->data +
                                  (rows->word[i] + (rows->words + k / 256 * 34));
        const uint head = at[0], low = at[1];
        float total = 0.0f;
#pragma unroll
        for (uint s = 0; s < 8; s++) {
            const uint scale = (low >> 4 * s & 15) | (head >> (12 + 2 * s) & 0x30);
            total += ((float)scale - 32.0f) *
                     iq4_products(h[s / 2].rows[s % 2], h[s / 2].sum[s % 2],
                                  h[s / 2].scale, vload4(0, at + 2 + 4 * s));
        }
        sum[i] += total * (halves(head).x * factor);
    }
}
#endif
