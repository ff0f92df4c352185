/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of activations as the vector kernels read them: 32-bit words.
 *
 *     planes:  k in the order of plane_position (planes.h), f32, times plane_factor, padded with
 *              zeros to whole blocks
 *     shorts:  16-bit integers and a factor for each block (shorts.h)
 *
 * and behind either, for each group of `group` k (0: none), the sum of the row's x; then up to 15
 * words of nothing, so that rows begin where vectors do. A block is 16 * planes of k.
 *
 * Whoever makes a row may write it so beside or instead of plain numbers:
 *
 *   FORM_PLANES  what the row is prepared for; 0: it is not
 *   FORM_GROUP, FORM_SHORTS
 *   FORM_SRC     element of the plain row
 */
#include "shorts.h"
#include "types.h"
#include "vector.h"

#ifndef FORM_PLANES
#define FORM_PLANES 0
#endif
#ifndef FORM_GROUP
#define FORM_GROUP 0
#endif
#ifndef FORM_SHORTS
#define FORM_SHORTS 0
#endif
#ifndef FORM_SRC
#define FORM_SRC f32
#endif
#define FORM_BLOCK (16 * FORM_PLANES)

/* What plane j of x is multiplied with; the topmost plane is shifted down instead. */
static inline float
plane_factor(uint j, uint planes)
{
    return j + 1 < planes ? ldexp(1.0f, -(int)(j * (32 / planes))) : 1.0f;
}

static inline uint
prepared_blocks(uint k_count, uint planes)
{
    return (k_count + 16 * planes - 1) / (16 * planes);
}

/* Words of a row before its sums, and of all of it. */
static inline ulong
prepared_values(uint k_count, uint planes, bool shorts)
{
    const ulong blocks = prepared_blocks(k_count, planes);
    return blocks * (shorts ? 8 * planes + 1 : 16 * planes);
}

static inline ulong
prepared_words(uint k_count, uint planes, uint group, bool shorts)
{
    const ulong sums = group ? k_count / group : 0;
    return (prepared_values(k_count, planes, shorts) + sums + 15) / 16 * 16;
}

#if FORM_PLANES
/* Block b of a row from v. */
static inline void
prepare_block(const float *v, __global int *row, uint b, uint blocks)
{
    __global float *planes = (__global float *)row + b * FORM_BLOCK;
    if (FORM_SHORTS) {
        write_shorts(v, FORM_PLANES, row, b, blocks);
        return;
    }
    for (uint j = 0; j < FORM_PLANES; j++) {
        const float factor = plane_factor(j, FORM_PLANES);
        for (uint i = 0; i < 16; i++)
            planes[j * 16 + i] = v[i * FORM_PLANES + j] * factor;
    }
}

/* The sum of elements first ... end - 1. */
static inline float
prepared_sum(__global const STORAGE(FORM_SRC) * x, uint first, uint end)
{
    float16 lanes = 0;
    uint k = first;
    for (; k + 16 <= end; k += 16)
        lanes += LOAD16(FORM_SRC, x, k);
    float sum = sum16(lanes);
    for (; k < end; k++)
        sum += LOAD(FORM_SRC, x, k);
    return sum;
}
#endif

/* What k from `first` to `end` are of the prepared row of x: whole blocks and groups, or all up to
 * the row's end. */
static inline void
prepare_part(__global const STORAGE(FORM_SRC) * x, uint k_count, uint first, uint end,
             __global int *row)
{
#if FORM_PLANES
    const uint blocks = prepared_blocks(k_count, FORM_PLANES);
    for (uint b = first / FORM_BLOCK; b * FORM_BLOCK < end; b++) {
        float v[FORM_BLOCK];
        const uint n = min(k_count - b * FORM_BLOCK, (uint)FORM_BLOCK);
        uint k = 0;
        for (; k + 16 <= n; k += 16)
            vstore16(LOAD16(FORM_SRC, x, b * FORM_BLOCK + k), 0, v + k);
        for (; k < FORM_BLOCK; k++)
            v[k] = k < n ? LOAD(FORM_SRC, x, b * FORM_BLOCK + k) : 0.0f;
        prepare_block(v, row, b, blocks);
    }
#endif
#if FORM_PLANES && FORM_GROUP
    __global float *sums =
        (__global float *)row + prepared_values(k_count, FORM_PLANES, FORM_SHORTS);
    for (uint g = first / FORM_GROUP; (g + 1) * FORM_GROUP <= end; g++)
        sums[g] = prepared_sum(x, g * FORM_GROUP, (g + 1) * FORM_GROUP);
#endif
}

/* Row r of y, prepared; NULL: not wanted. */
static inline void
prepare_row(__global const STORAGE(FORM_SRC) * y, uint k_count, ulong r,
            __global int *prepared)
{
    if (FORM_PLANES && prepared)
        prepare_part(y + r * k_count, k_count, 0, k_count,
                     prepared + r * prepared_words(k_count, FORM_PLANES, FORM_GROUP,
                                                   FORM_SHORTS));
}
