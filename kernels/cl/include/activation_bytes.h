/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations as 16-bit integers in two rows of bytes, made in the registers of the sub-group that
 * multiplies them:
 *
 *     x[k] = (256 high[k] + low[k]) scale        bytes are signed, a scale for X_COLUMNS of k
 *
 * exact to 2^-16 of the largest of them. Where that is infinite or not a number, so is the scale.
 * Which k a lane has depends on how a format orders its columns.
 *
 * A number's integer is found in the lowest 16 bits of number + X_ROUND, 128 too large, so that
 * byte 1 is the high byte and byte 0, with its topmost bit flipped, the low one.
 */
#include "integer_mad.h"
#include "types.h"

#define X_COLUMNS 128
#define X_VALUES  (X_COLUMNS / SG) /* in a lane */
#define X_LARGEST 32639.0f         /* 256 * 127 + 127 */
#define X_ROUND   12583040.0f      /* 1.5 * 2^23 + 128 */
#define X_BITS    0x4b400080u      /* its bits         */

struct activations {
    uint q[X_VALUES]; /* X_BITS more than they are */
    float scale;
};

/* The sum of this x that `n` values of each lane from q on stand for. */
static inline float
sum_of_x(const struct activations *a, const uint first, const uint n)
{
    uint sum = 0;
#pragma unroll
    for (uint i = first; i < first + n; i++)
        sum += a->q[i];
    return (float)((int)sub_group_reduce_add(sum) - (int)(n * SG * X_BITS)) * a->scale;
}

/* x[0 … n - 1]; n is 1 or even, and then halves lie in whole words. */
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

/* The X_COLUMNS values from x[k] on: lane l has, of each SG * n of them, the n from n l on. In
 * place of SG * n that lie behind column `last`, those that begin there come once more. */
static inline void
load_values(__global const STORAGE(SRC) * x, uint k, uint last, const uint n,
            float v[X_VALUES])
{
#pragma unroll
    for (uint i = 0; i < X_VALUES; i += n) {
        __global const STORAGE(SRC) *at = x + min(k + i * SG, last);
#if IS_HALF(SRC)
        if (n == 2) {
            const uint two = intel_sub_group_block_read((__global const uint *)at);
            vstore2(halves(two), 0, v + i);
            continue;
        }
#endif
        load_neighbours(at + n * get_sub_group_local_id(), n, v + i);
    }
}

/* The integers of the values v of all lanes. */
static inline void
make_integers(const float v[X_VALUES], struct activations *a)
{
    uint bits = 0;
#pragma unroll
    for (uint i = 0; i < X_VALUES; i++)
        bits = max(bits, as_uint(v[i]) & 0x7fffffffu);
    const float largest = as_float(sub_group_reduce_max(bits));
    const float factor = X_LARGEST * native_recip(fmax(largest, 1e-30f));
    a->scale = largest * (1.0f / X_LARGEST);
#pragma unroll
    for (uint i = 0; i < X_VALUES; i++)
        a->q[i] = as_uint(v[i] * factor + X_ROUND);
}

/* Rows of the high and of the low bytes of LANE_SLOTS integers. Bits are moved in words: of vectors
 * of bytes Intel's compiler makes two moves a byte. */
static inline a_rows2
byte_rows(const uint *q)
{
#if SG == 16
    const uint high = (q[1] & 0xff00u) | (q[0] >> 8 & 0xffu);
    const uint low = (q[1] << 8 & 0xff00u) | (q[0] & 0xffu);
    return (short2)((short)high, (short)(low ^ 0x8080u));
#else
    const uint high = (q[3] << 16 & 0xff000000u) | (q[2] << 8 & 0xff0000u) |
                      (q[1] & 0xff00u) | (q[0] >> 8 & 0xffu);
    const uint low =
        q[3] << 24 | (q[2] << 16 & 0xff0000u) | (q[1] << 8 & 0xff00u) | (q[0] & 0xffu);
    return (int2)((int)high, (int)(low ^ 0x80808080u));
#endif
}

/* The number that products of both rows stand for, but for the scale. */
static inline int
both_bytes(int2 c)
{
    return c.x * 256 + c.y;
}
