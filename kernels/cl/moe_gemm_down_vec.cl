/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the tiles of one expert; many tokens.
 *
 *     y[tile * 16 + lane][n] = h[tile][.][lane] . down[e][n] (+ bias[e][n])
 *
 * A work-item computes per_item (a multiple of ROWS) neighbouring n for all tiles of one expert,
 * two at a time: the tiles stay in cache while all rows are multiplied by them. Global size
 * {H / per_item rounded up, E}, local size 1.
 */
#define DST f32
#include "gemm.h"

__kernel void
moe_gemm_down_vec(WEIGHT_PARAMETERS(w), __global const float *h,
                  __global const uint *first_tile, __global const int *tile_expert,
                  __global const int *source, __global const float *bias,
                  __global float *y, uint n_count, uint k_count, uint per_item)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const ulong expert = get_global_id(1);
    const uint begin = (uint)get_global_id(0) * per_item;
    const uint row_end = min(begin + per_item, n_count);
    const ulong last = stored_row(&w, expert, n_count - 1);
    const ulong tile_floats = (ulong)(k_count + BLOCK - 1) / BLOCK * BLOCK * 16;
    const ulong y_floats = (ulong)n_count * 16;
    const uint end = first_tile[expert + 1];
    float16 acc[ROWS][2];
    float strips[2][16][STRIP];
    for (uint tile = first_tile[expert]; tile < end; tile += 2) {
        __global const float *x = h + tile * tile_floats;
        const uint tiles = tile + 1 < end ? 2 : 1;
        for (uint strip = begin; strip < row_end; strip += STRIP) {
            const uint n = min(row_end - strip, (uint)STRIP);
            for (uint r = 0; r < n; r += ROWS) {
                const ulong row = stored_row(&w, expert, strip + r);
                if (tiles == 2) {
                    gemm_tiles(&w, row, last, x, tile_floats, 2, acc);
                    collect(acc, 1, r, strips[1]);
                } else {
                    gemm_tiles(&w, row, last, x, tile_floats, 1, acc);
                }
                collect(acc, 0, r, strips[0]);
            }
            for (uint t = 0; t < tiles; t++)
                write_strip(strips[t], n, 16, bias ? bias + expert * n_count + strip : 0,
                            y + (tile + t) * y_floats + strip, n_count);
        }
    }
}
