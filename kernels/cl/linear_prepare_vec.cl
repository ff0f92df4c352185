/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation rows as linear_gemv_vec and its kin read them: in planes, f32, scaled per plane,
 * padded with zeros (gemv.h); and the sum of each group.
 *
 *     planes[row][plane_position(k)] = x[row][k] * plane_factor(k % PLANES)
 *     sums[row][g] = sum_{k in g} x[row][k]
 *
 * A work-item moves one row; global size {rows}, local size 1.
 */
#include "gemv.h"

#ifndef SRC
#define SRC f32 /* element of x */
#endif

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

__kernel void
linear_prepare_vec(__global const STORAGE(SRC) * x, __global float *planes,
                   __global float *sums, uint k_count)
{
    const ulong row = get_global_id(0);
    const uint blocks = (k_count + BLOCK - 1) / BLOCK;
    x += row * k_count;
    planes += row * blocks * BLOCK;
    for (uint b = 0; b < blocks; b++)
        move_block(x + b * BLOCK, k_count - b * BLOCK, planes + b * BLOCK);
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
