/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the tiles of tokens of one expert; many tokens, on matrix engines.
 *
 *     y[tile * 16 + t][n] = h[tile][.][t] . down[e][n] (+ bias[e][n]),  e = tile_expert[tile]
 *
 * A sub-group computes 16 neighbouring n of TILES tiles of an expert, the first of which it was
 * started for; those started for the others return. Global size {H / 16 rounded up * SG, tiles}.
 */
#define DST f32
#include "sub_group_matrix.h"

SUB_GROUP_SIZE __kernel void
moe_gemm_down_dpas(WEIGHT_PARAMETERS(w), __global const uint *h,
                   __global const uint *first_tile, __global const int *tile_expert,
                   __global const int *source, __global const float *bias,
                   __global float *y, uint n_count, uint k_count)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = sub_group_index() * ROW_BLOCKS * 8, tile = (uint)get_group_id(1);
    const int expert = tile_expert[tile];
    float8 acc[ROW_BLOCKS][TOKEN_BLOCKS];
    struct row_block rows[ROW_BLOCKS];
    if (expert < 0 || first >= n_count || (tile - first_tile[expert]) % TILES != 0)
        return;
    const ulong row = (ulong)expert * n_count;
    const uint last_tile = first_tile[expert + 1] - 1;
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++)
        rows[r] = row_block_at(&w, stored_row(&w, expert, first + r * 8),
                               stored_row(&w, expert, n_count - 1));
    multiply_tiles(rows, h, tile, last_tile, acc);
#pragma unroll
    for (uint t = 0; t < TOKEN_BLOCKS; t++) {
        const ulong place = (ulong)tile * 16 + t * SG + get_sub_group_local_id();
#pragma unroll
        for (uint r = 0; r < ROW_BLOCKS; r++) {
            const uint n = first + r * 8;
            if (tile + t / TILE_BLOCKS <= last_tile && n < n_count)
                store_rows(acc[r][t], bias ? bias + row + n : 0, y + place * n_count + n,
                           n_count - n);
        }
    }
}
