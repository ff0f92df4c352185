/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of a tile of 16 tokens of one expert; many tokens.
 *
 *     y[tile * 16 + lane][n] = h[tile][.][lane] . down[e][n] (+ bias[e][n]),  e = tile_expert[tile]
 *
 * A work-group of ITEMS computes 64 n of a tile; groups {H / 64, tiles}.
 */
#include "expert_tile.h"

__kernel void
moe_gemm_down_gen(WEIGHT_PARAMETERS(w), __global const float *h,
                  __global const uint *first_tile, __global const int *tile_expert,
                  __global const int *source, __global const float *bias,
                  __global float *y, uint n_count, uint k_count)
{
    __local float w[TILE_K * W_COLUMNS], xs[TILE_K * X_COLUMNS];
    const struct weight weight = WEIGHT(w, k_count, 0);
    const uint first = (uint)get_group_id(0) * TILE_N;
    const ulong tile = get_group_id(1);
    const int expert = tile_expert[tile];
    if (expert < 0) /* equal in the whole work-group */
        return;
    const ulong base = (ulong)expert * n_count;
    float sum[REG_N][REG_T];
    clear_block(sum);
    h += tile * padded_columns(k_count, PLANES) * 16;
    uint k = 0;
    do { /* runs at least once (group.h) */
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_weights(w, TILE_N, &weight, stored_row(&weight, expert, first),
                      stored_row(&weight, expert, n_count), k);
        stage_lanes(xs, h, k, k_count);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_tile(w, xs, sum);
        k += TILE_K;
    } while (k < k_count);
    for (uint i = 0; i < REG_N; i++) {
        const uint n = first + block_row(i);
        for (uint j = 0; j < REG_T && n < n_count; j++)
            y[(tile * 16 + block_token(j)) * n_count + n] =
                sum[i][j] + (bias ? bias[base + n] : 0.0f);
    }
}
