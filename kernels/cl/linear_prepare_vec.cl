/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation rows as linear_gemv_vec and its kin read them (gemv_rows.h), and the sum of each
 * group. In planes, f32, scaled per plane, padded with zeros:
 *
 *     rows[row][plane_position(k)] = x[row][k] * plane_factor(k % PLANES)
 *     sums[row][g] = sum_{k in g} x[row][k]
 *
 * or 16-bit integers (shorts.h). A work-item moves one row; global size {rows}, local size 1.
 */
#ifndef SRC
#define SRC f32 /* element of x */
#endif
#include "gemv_rows.h"

#if SHORTS
static inline void
write_row(__global const STORAGE(SRC) * x, uint k_count, __global X_WORD *row)
{
    write_short_row(x, k_count, row);
}
#else
static inline void
move_block(__global const STORAGE(SRC) * x, uint left, __global float *planes)
{
    for (uint j = 0; j < PLANES; j++) {
        const float factor = plane_factor(j);
        for (uint i = 0; i < 16; i++) {
            const uint k = i * PLANES + j;
            planes[j * 16 + i] = k < left ? LOAD(SRC, x, k) * factor : 0.0f;
        }
    }
}

static inline void
write_row(__global const STORAGE(SRC) * x, uint k_count, __global X_WORD *row)
{
    for (uint k = 0; k < k_count; k += BLOCK)
        move_block(x + k, k_count - k, row + k);
}
#endif

__kernel void
linear_prepare_vec(__global const STORAGE(SRC) * x, __global X_WORD *rows,
                   __global float *sums, uint k_count)
{
    const ulong row = get_global_id(0);
    x += row * k_count;
    write_row(x, k_count, rows + row * x_row_words(k_count));
#if GROUP
    const uint groups = k_count / GROUP;
    for (uint g = 0; g < groups; g++) {
        const uint end = (g + 1) * GROUP;
        float16 lanes = 0;
        uint k = g * GROUP;
        for (; k + 16 <= end; k += 16)
            lanes += LOAD16(SRC, x, k);
        float sum = sum16(lanes);
        for (; k < end; k++)
            sum += LOAD(SRC, x, k);
        sums[row * groups + g] = sum;
    }
#endif
}
