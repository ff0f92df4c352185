/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the tiles of one expert; many tokens.
 *
 *     y[tile * 16 + lane][n] = h[tile][.][lane] . down[e][n] (+ bias[e][n])
 *
 * A work-item computes per_item (a multiple of ROWS) neighbouring n for all tiles of one expert, two
 * at a time: the tiles stay in cache while the rows pass. Global size {H / per_item rounded up, E},
 * local size 1.
 */
#include "gemm.h"

static inline void
store_tile(__global float *y, float16 acc[ROWS][2], uint which, uint first, uint n_count,
           __global const float *bias)
{
    float lanes[ROWS][16];
    for (uint r = 0; r < ROWS; r++)
        vstore16(acc[r][which], 0, lanes[r]);
    for (uint lane = 0; lane < 16; lane++) {
        for (uint r = 0; r < ROWS && first + r < n_count; r++)
            y[(ulong)lane * n_count + first + r] =
                lanes[r][lane] + (bias ? bias[first + r] : 0.0f);
    }
}

__kernel void
moe_gemm_down_vec(__global const uchar *data, __global const uchar *scale,
                  __global const uchar *zp, __global const float *h,
                  __global const uint *first_tile, __global const float *bias,
                  __global float *y, uint n_count, uint k_count, uint per_item)
{
    const ulong expert = get_global_id(1);
    const uint begin = (uint)get_global_id(0) * per_item;
    const uint row_end = min(begin + per_item, n_count);
    const ulong last = (expert + 1) * n_count - 1;
    const ulong tile_floats = (ulong)(k_count + BLOCK - 1) / BLOCK * BLOCK * 16;
    const ulong y_floats = (ulong)n_count * 16;
    __global const float *row_bias = bias ? bias + expert * n_count : 0;
    const uint end = first_tile[expert + 1];
    float16 acc[ROWS][2];
    for (uint tile = first_tile[expert]; tile < end; tile += 2) {
        __global const float *x = h + tile * tile_floats;
        for (uint first = begin; first < row_end; first += ROWS) {
            const ulong row = expert * n_count + first;
            if (tile + 1 < end) {
                gemm_tiles(data, scale, zp, row, 1, last, k_count, x, tile_floats, 2,
                           acc);
                store_tile(y + (tile + 1) * y_floats, acc, 1, first, n_count, row_bias);
            } else {
                gemm_tiles(data, scale, zp, row, 1, last, k_count, x, tile_floats, 1,
                           acc);
            }
            store_tile(y + tile * y_floats, acc, 0, first, n_count, row_bias);
        }
    }
}
