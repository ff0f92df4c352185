/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared rows: rows of activations as the vector kernels read them, in 32-bit words.
 *
 *     planes:  k in the order of plane_position (planes.h), f32, times plane_factor, padded with
 *              zeros to whole blocks
 *     shorts:  16-bit integers, with scale and sums of each block (shorts.h)
 *     bytes:   8-bit integers, with scales and sums of each unit (bytes.h)
 *
 * and behind the first two kinds, for each group of `group` columns (0: none), the sum of its x;
 * then up to 15 unused words, so that each row begins at a multiple of 16 words. A block is 16 *
 * planes columns.
 *
 * Kernels that compute plain rows may also write them in this form:
 *
 *   FORM  planes, group and kind that the kernel writes. Kinds: 0 planes; 1 shorts; 2 shorts for
 *         weights in blocks, with planes 8; 3 bytes with a scale per 32 columns, 4 with one per
 *         128, both with planes 8. 0, 0, 0: it writes plain rows only
 */
#include "bytes.h"
#include "shorts.h"
#include "types.h"
#include "vector.h"

#ifndef FORM
#define FORM 0, 0, 0
#endif

/* Returns the factor of plane j of x; 1 for the topmost plane, whose weights are shifted down
 * instead. */
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

/* Returns the words of a row before its sums; prepared_words, of the whole row. */
static inline ulong
prepared_values(uint k_count, uint planes, uint kind)
{
    const ulong blocks = prepared_blocks(k_count, planes);
    if (kind >= 3)
        return prepared_blocks(k_count, 8) * BYTE_UNIT_WORDS;
    return blocks * (kind == 2 ? 64 + 1 + 8 : kind ? 8 * planes + 1 : 16 * planes);
}

static inline ulong
prepared_words(uint k_count, uint planes, uint group, uint kind)
{
    const ulong sums = group ? k_count / group : 0;
    return (prepared_values(k_count, planes, kind) + sums + 15) / 16 * 16;
}

/* Writes block b of a row from v. */
__attribute__((always_inline)) static inline void
prepare_block(const float *v, const uint planes, const uint kind, __global int *row,
              uint b, uint blocks)
{
    __global float *to = (__global float *)row + b * 16 * planes;
    if (kind >= 3) {
        write_bytes(v, kind == 3 ? 32 : BYTE_UNIT, row, b, blocks);
        return;
    }
    if (kind) {
        write_shorts(v, planes, kind == 2, row, b, blocks);
        return;
    }
    for (uint j = 0; j < planes; j++) {
        const float factor = plane_factor(j, planes);
        for (uint i = 0; i < 16; i++)
            to[j * 16 + i] = v[i * planes + j] * factor;
    }
}

/* Defines, for T f32 and f16: prepare_part_<T>(x, k_count, first, end, row, FORM) writes columns
 * first … end - 1 of the prepared row of x: whole blocks and groups, or all up to the row's end.
 * prepare_row_<T>(x, k_count, r, prepared, FORM) writes row r of many; prepared NULL: nothing is
 * written. */
#define PREPARE(T)                                                                       \
    static inline float prepared_sum_##T(__global const STORAGE(T) * x, uint k,          \
                                         uint end)                                       \
    {                                                                                    \
        float16 lanes = 0;                                                               \
        for (; k + 16 <= end; k += 16)                                                   \
            lanes += LOAD16(T, x, k);                                                    \
        float sum = sum16(lanes);                                                        \
        for (; k < end; k++)                                                             \
            sum += LOAD(T, x, k);                                                        \
        return sum;                                                                      \
    }                                                                                    \
    __attribute__((always_inline)) static inline void prepare_part_##T(                  \
        __global const STORAGE(T) * x, uint k_count, uint first, uint end,               \
        __global int *row, const uint planes, const uint group, const uint kind)         \
    {                                                                                    \
        const uint block = 16 * (planes ? planes : 1);                                   \
        const uint blocks = prepared_blocks(k_count, planes ? planes : 1);               \
        __global float *sums =                                                           \
            (__global float *)row + prepared_values(k_count, planes, kind);              \
        for (uint b = first / block; b * block < end; b++) {                             \
            float v[128];                                                                \
            const uint n = min(k_count - b * block, block);                              \
            uint k = 0;                                                                  \
            for (; k + 16 <= n; k += 16)                                                 \
                vstore16(LOAD16(T, x, b *block + k), 0, v + k);                          \
            for (; k < block; k++)                                                       \
                v[k] = k < n ? LOAD(T, x, b * block + k) : 0.0f;                         \
            prepare_block(v, planes, kind, row, b, blocks);                              \
        }                                                                                \
        for (uint g = group ? first / group : 0; group && (g + 1) * group <= end; g++)   \
            sums[g] = prepared_sum_##T(x, g * group, (g + 1) * group);                   \
    }                                                                                    \
    __attribute__((always_inline)) static inline void prepare_row_##T(                   \
        __global const STORAGE(T) * x, uint k_count, ulong r, __global int *prepared,    \
        const uint planes, const uint group, const uint kind)                            \
    {                                                                                    \
        if (planes && prepared)                                                          \
            prepare_part_##T(x + r * k_count, k_count, 0, k_count,                       \
                             prepared +                                                  \
                                 r * prepared_words(k_count, planes, group, kind),       \
                             planes, group, kind);                                       \
    }
PREPARE(f16)
PREPARE(f32)
