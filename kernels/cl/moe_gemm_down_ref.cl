/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of a tile of tokens of one expert; many tokens.
 *
 *     y[tile * 16 + lane][n] = h[tile][.][lane] . down[e][n] (+ bias[e][n]),  e = tile_expert[tile]
 *
 * A work-item computes one n of a tile; global size {H, tiles}.
 */
#include "planes.h"

__kernel void
moe_gemm_down_ref(__global const uchar *data, __global const uchar *scale,
                  __global const uchar *zp, __global const float *h,
                  __global const int *tile_expert, __global const float *bias,
                  __global float *y, uint k_count)
{
    const uint n = (uint)get_global_id(0), n_count = (uint)get_global_size(0);
    const ulong tile = get_global_id(1);
    const int expert = tile_expert[tile];
    if (expert < 0)
        return;
    const ulong row = (ulong)expert * n_count + n;
    const uint group = weight_group(k_count), groups = k_count / group;
    h += tile * ((k_count + BLOCK - 1) / BLOCK * BLOCK) * 16;
    float16 sum = bias ? bias[row] : 0.0f;
    for (uint g = 0; g < groups; g++) {
        const float zero = weight_zero_point(zp, row, g, n_count, groups);
        float16 part = 0;
        for (uint k = g * group; k < (g + 1) * group; k++)
            part += (weight_raw(data, row, k, k_count) - zero) *
                    vload16(plane_position(k, PLANES), h);
        sum += part * weight_scale(scale, row, g, n_count, groups);
    }
    float lanes[16];
    vstore16(sum, 0, lanes);
    for (uint lane = 0; lane < 16; lane++)
        y[(tile * 16 + lane) * n_count + n] = lanes[lane];
}
