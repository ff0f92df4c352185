/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of a tile of tokens of one expert; many tokens.
 *
 *     y[tile * 16 + t][n] = h[tile][.][t] . down[e][n] (+ bias[e][n]),  e = tile_expert[tile]
 *
 * A sub-group computes SG neighbouring n of a tile, each lane one. Global size
 * {H rounded up to SG, tiles}.
 */
#include "sub_group_gemm.h"

SUB_GROUP_SIZE __kernel void
moe_gemm_down_sg(WEIGHT_PARAMETERS(w), __global const float *h,
                 __global const uint *first_tile, __global const int *tile_expert,
                 __global const int *source, __global const float *bias,
                 __global float *y, uint n_count, uint k_count)
{
    const uint first = sub_group_index() * SG, n = first + get_sub_group_local_id();
    const ulong tile = get_group_id(1);
    const int expert = tile_expert[tile];
    float acc[1][TOKENS];
    if (expert < 0 || first >= n_count)
        return;
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint mine = min(n, n_count - 1);
    const struct lane_row row[1] = {lane_row_at(&w, stored_row(&w, expert, mine))};
    multiply_tile(row, h + tile * ((k_count + BLOCK - 1) / BLOCK * BLOCK) * 16, 0, acc);
    const float b = bias ? bias[(ulong)expert * n_count + mine] : 0.0f;
    if (n >= n_count)
        return;
#pragma unroll
    for (uint t = 0; t < 16; t++)
        y[(tile * 16 + t) * n_count + n] = acc[0][t] + b;
}
