/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations as 16-bit integers, stored as a row of high bytes and a row of low bytes. The
 * sub-group that multiplies them converts them, in registers:
 *
 *     x[k] = (256 high[k] + low[k]) scale        bytes are signed, one scale for X_COLUMNS columns
 *
 * exact to 2^-16 of the largest magnitude. If that is infinite or NaN, so is the scale.
 *
 * The lowest 16 bits of the float x / scale + X_ROUND are the integer + 128. Of these bits, byte 1
 * is the high byte, and byte 0 with its topmost bit flipped is the low byte.
 */
#include "integer_mad.h"
#include "types.h"
#include "weights.h"

#define X_COLUMNS 128
#define X_VALUES  (X_COLUMNS / SG) /* columns for each lane */
#define X_LARGEST 32639.0f         /* 256 * 127 + 127 */
#define X_ROUND   12583040.0f      /* 1.5 * 2^23 + 128 */
#define X_BITS    0x4b400080u      /* the bits of X_ROUND */

struct activations {
    uint q[X_VALUES];    /* the integers, plus X_BITS */
    float scale, factor; /* factor: 1 / scale; bounded if all x are 0 */
};

/* Returns the sum over the sub-group of n values x of each lane, from `first` on. `part` 0 or 1:
 * only of the values that are multiplied by low or high nibbles (load_pairs). */
enum { BOTH_PARTS = 2 };
static inline float
sum_of_x(const struct activations *a, const uint first, const uint n, const uint part)
{
    const uint step = DP4A ? 1 : part == BOTH_PARTS ? 1 : 2; /* with DP4A lanes are parts */
    uint sum = 0u - n / step * X_BITS;
#pragma unroll
    for (uint i = 0; i < n; i += step)
        sum += a->q[first + i + part % step];
#if DP4A
    sum = part == BOTH_PARTS ? sum : get_sub_group_local_id() % 2 == part ? sum : 0;
#endif
    return (float)sub_group_reduce_add((int)sum) * a->scale;
}

/* Loads x[0 … n - 1] into v. n is 1, or even; then halves are aligned to words. */
static inline void
load_neighbours(__global const STORAGE(SRC) * x, const uint n, float *v)
{
#if IS_HALF(SRC)
    if (n > 1) {
#pragma unroll
        for (uint i = 0; i < n; i += 2)
            vstore2(halves(((__global const uint *)x)[i / 2]), 0, v + i);
        return;
    }
#endif
#pragma unroll
    for (uint i = 0; i < n; i++)
        v[i] = ALIGNED(SRC, x, i);
}

/* The functions load_* load a lane's LANE_SLOTS of the 32 columns of a step, from x on. They differ
 * in the order of columns over slots (lanes and their elements): bytes: in column order, for
 * weights of bytes; nibbles: for weights whose byte has column 2 j in its low nibble and 2 j + 1 in
 * its high nibble; pairs: the low nibble of byte j is column j, the high nibble column `apart` + j,
 * `apart` being 16, or 8 for the same within each 16 columns; bits: the order of mad_bits. `behind`
 * is 2 if a block's bytes begin in the middle of a word: then slots are two bytes later, and those
 * of the last two bytes come first. */
static inline void
load_bytes(__global const STORAGE(SRC) * x, const uint behind, float v[LANE_SLOTS])
{
    const uint at = LANE_SLOTS * get_sub_group_local_id();
#if IS_HALF(SRC) && SG == 16
    if (behind == 0) {
        vstore2(halves(intel_sub_group_block_read((__global const uint *)x)), 0, v);
        return;
    }
#endif
#pragma unroll
    for (uint i = 0; i < LANE_SLOTS; i += 2)
        load_neighbours(x + ((at + i - behind) & 31), 2, v + i);
}

static inline void
load_nibbles(__global const STORAGE(SRC) * x, float v[LANE_SLOTS])
{
#if DP4A && IS_HALF(SRC)
    const uint lane = get_sub_group_local_id();
    const uint4 pairs = vload4(lane / 2, (__global const uint *)x) >> (lane % 2 * 16);
#pragma unroll
    for (uint i = 0; i < LANE_SLOTS; i++)
        v[i] = halves(pairs[i]).x;
#elif DP4A
    const uint lane = get_sub_group_local_id();
#pragma unroll
    for (uint i = 0; i < LANE_SLOTS; i++)
        v[i] = ALIGNED(SRC, x, lane / 2 * 8 + lane % 2 + 2 * i);
#else
    load_bytes(x, 0, v);
#endif
}

static inline uint
pairs_column(const uint apart, const uint byte)
{
    return apart == 8 ? byte % 8 + byte / 8 * 16 : byte;
}

static inline void
load_pairs(__global const STORAGE(SRC) * x, const uint apart, const uint behind,
           float v[LANE_SLOTS])
{
    const uint lane = get_sub_group_local_id();
#if DP4A
    const uint byte = lane / 2 * 4 - behind;
    x += lane % 2 * apart;
    load_neighbours(x + pairs_column(apart, byte & 15), 2, v);
    load_neighbours(x + pairs_column(apart, (byte + 2) & 15), 2, v + 2);
#elif SG == 16
    const uint at = pairs_column(apart, (lane - behind) & 15);
    v[0] = ALIGNED(SRC, x, at);
    v[1] = ALIGNED(SRC, x, apart + at);
#else
    const uint at = pairs_column(apart, (2 * lane - behind) & 15);
    float low[2], high[2];
    load_neighbours(x + at, 2, low);
    load_neighbours(x + apart + at, 2, high);
    v[0] = low[0];
    v[1] = high[0];
    v[2] = low[1];
    v[3] = high[1];
#endif
}

#if SG == 16
/* Loads 64 columns: lane i gets columns i, 16 + i, 32 + i, 48 + i. PoCL has no
 * intel_sub_group_block_read_us4. */
static inline void
load_runs(__global const STORAGE(SRC) * x, float v[4])
{
#if !IS_HALF(SRC)
    vstore4(as_float4(intel_sub_group_block_read4((__global const uint *)x)), 0, v);
#else
#if MATRIX_ENGINE
    const ushort4 runs = intel_sub_group_block_read_us4((__global const ushort *)x);
#else
    __global const ushort *from = (__global const ushort *)x + get_sub_group_local_id();
    const ushort4 runs = (ushort4)(from[0], from[16], from[32], from[48]);
#endif
#pragma unroll
    for (uint i = 0; i < 4; i++)
        v[i] = half_bits(runs[i]);
#endif
}
#endif

/* Loads columns 0 to 63 of x in the order of load_pairs(x) and load_pairs(x + 32); by block reads
 * if `apart` is 16. */
static inline void
load_two_steps(__global const STORAGE(SRC) * x, const uint apart, float v[2 * LANE_SLOTS])
{
#if SG == 16
    if (apart == 16) {
        load_runs(x, v);
        return;
    }
#elif !DP4A && IS_HALF(SRC)
    if (apart == 16) {
        const uint4 runs = intel_sub_group_block_read4((__global const uint *)x);
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            const float2 pair = halves(runs[i]);
            v[i / 2 * 4 + i % 2] = pair.x;
            v[i / 2 * 4 + i % 2 + 2] = pair.y;
        }
        return;
    }
#endif
    load_pairs(x, apart, 0, v);
    load_pairs(x + 32, apart, 0, v + LANE_SLOTS);
}

static inline void
load_bits(__global const STORAGE(SRC) * x, float v[LANE_SLOTS])
{
    const uint lane = get_sub_group_local_id(), step = DP4A ? 8 : 2;
    const uint at = DP4A ? lane : 2 * LANE_SLOTS * lane % 32 + lane / (SG / 2);
#pragma unroll
    for (uint i = 0; i < LANE_SLOTS; i++)
        v[i] = ALIGNED(SRC, x, at + step * i);
}

/* For a block that begins in the middle of a word (`behind` 2): returns a lane's rows for its first
 * words, with zeros for the first two bytes. These are `slots` nibbles or bytes and belong to the
 * block's last word. */
static inline a_rows2
in_first_words(a_rows2 rows, const uint slots)
{
    const uint lane = get_sub_group_local_id();
#if DP4A
    return rows & (a_row)(lane < slots / 2 ? 0xffff0000u : 0xffffffffu);
#elif SG == 16
    return rows & (a_row)(lane < slots / 2 ? 0 : -1);
#else
    return rows & (a_row)(lane ? -1 : slots == 2 ? (int)0xffff0000 : 0);
#endif
}

/* Converts v to integers by a's scale; no magnitude in v may be above a's largest. */
static inline void
same_integers(const float v[X_VALUES], const struct activations *a, uint *q)
{
#pragma unroll
    for (uint i = 0; i < X_VALUES; i++)
        q[i] = as_uint(v[i] * a->factor + X_ROUND);
}

/* Sets a's scale and integers from the values v of all lanes. */
static inline void
make_integers(const float v[X_VALUES], struct activations *a)
{
    uint bits = 0;
#pragma unroll
    for (uint i = 0; i < X_VALUES; i++)
        bits = max(bits, as_uint(v[i]) & 0x7fffffffu);
    const float largest = as_float(sub_group_reduce_max(bits));
    a->scale = largest * (1.0f / X_LARGEST);
    a->factor = X_LARGEST * native_recip(fmax(largest, 1e-30f));
    same_integers(v, a, a->q);
}

/* Returns the row of the high bytes and that of the low bytes of LANE_SLOTS integers. It moves bits
 * in shorts and words, because Intel's compiler makes two moves a byte of vectors of bytes. */
static inline a_rows2
byte_rows(const uint *q)
{
#if SG == 16
    const ushort even = as_ushort2(q[0]).x, odd = as_ushort2(q[1]).x;
    const ushort high = (ushort)((odd & 0xff00) | even >> 8);
    const ushort low = (ushort)((ushort)(odd << 8) | (even & 0xff));
    return (short2)((short)high, (short)(low ^ 0x8080));
#else
    const uint even = q[2] << 16 | (q[0] & 0xffffu), odd = q[3] << 16 | (q[1] & 0xffffu);
    const uint high = (odd & 0xff00ff00u) | (even >> 8 & 0x00ff00ffu);
    const uint low = (odd << 8 & 0xff00ff00u) | (even & 0x00ff00ffu);
    return (int2)((int)high, (int)(low ^ 0x80808080u));
#endif
}

/* Combines the products of the high bytes and of the low bytes; not yet multiplied by the scale. */
static inline int
both_bytes(int2 c)
{
    return c.x * 256 + c.y;
}
