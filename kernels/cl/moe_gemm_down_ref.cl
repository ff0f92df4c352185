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
moe_gemm_down_ref(WEIGHT_PARAMETERS(w), __global const float *h,
                  __global const uint *first_tile, __global const int *tile_expert,
                  __global const int *source, __global const float *bias,
                  __global float *y, uint n_count, uint k_count)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint n = (uint)get_global_id(0);
    const ulong tile = get_global_id(1);
    const int expert = tile_expert[tile];
    if (expert < 0)
        return;
    h += tile * ((k_count + BLOCK - 1) / BLOCK * BLOCK) * 16;
    float16 sum = bias ? bias[(ulong)expert * n_count + n] : 0.0f;
    for (uint k = 0; k < k_count; k++)
        sum += weight_at(&w, stored_row(&w, expert, n), k) *
               vload16(plane_position(k, PLANES), h);
    float lanes[16];
    vstore16(sum, 0, lanes);
    for (uint lane = 0; lane < 16; lane++)
        y[(tile * 16 + lane) * n_count + n] = lanes[lane];
}
