/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the tiles of one expert; many tokens.
 *
 *     y[p][n] = h[p] . down[e][n] (+ bias[e][n])
 *
 * A work-item computes 16 * VECTORS neighbouring n for all tiles of one expert. Global size
 * {H / (16 * VECTORS) rounded up, E}, local size 1.
 */
#define DST     f32
#define SHORTS  1
#define X_PAIRS 1
#include "bf16_gemm.h"

__kernel void
moe_gemm_down_amx(WEIGHT_PARAMETERS(w), __global const uint *h,
                  __global const uint *first_tile, __global const int *tile_expert,
                  __global const int *source, __global const float *bias,
                  __global float *y, uint n_count, uint k_count)
{
#if GROUP || BLOCKS
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = (uint)get_global_id(0) * TILE_ROWS;
    const ulong expert = get_global_id(1), row = expert * n_count + first;
    const uint end = first_tile[expert + 1];
    tile_sums c[VECTORS][MOST_TILES];
    struct short_rows rows[VECTORS];
    for (uint v = 0; v < VECTORS; v++)
        rows[v] = (struct short_rows){w, stored_row(&w, expert, first + v * 16),
                                      stored_row(&w, expert, n_count - 1), TILE_ROWS};
    for (uint tile = first_tile[expert]; tile < end; tile += MOST_TILES) {
        const uint tiles = min(end - tile, (uint)MOST_TILES);
        bf16_gemm(rows, h + tile * bf16_tile_words(k_count), tiles, c);
        for (uint n = 0; n < tiles; n++)
            put_tile(c, n, 16, n_count - first, bias ? bias + row : 0, y,
                     (ulong)(tile + n) * 16 * n_count + first, n_count);
    }
#endif
}
