/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]),   many tokens
 *
 * A work-item computes per_item (a multiple of ROWS) columns of y for all tokens, two tiles of 16
 * at a time: the tiles stay in cache while all rows are multiplied by them. Global size
 * {N / per_item, rounded up}, local size 1. x was packed by linear_pack_vec.
 */
#include "gemm.h"

__kernel void
linear_gemm_vec(WEIGHT_PARAMETERS(w), __global const float *x,
                __global const float *bias, __global STORAGE(DST) * y, uint n_count,
                uint k_count, uint t_count, uint per_item)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const ulong last = stored_row(&w, 0, n_count - 1);
    const uint begin = (uint)get_global_id(0) * per_item;
    const uint end = min(begin + per_item, n_count);
    const ulong tile_floats = (ulong)(k_count + BLOCK - 1) / BLOCK * BLOCK * 16;
    float16 acc[ROWS][2];
    float strips[2][16][STRIP];
    for (uint t = 0; t < t_count; t += 32) {
        __global const float *from = x + t / 16 * tile_floats;
        const uint n_tiles = t + 16 < t_count ? 2 : 1;
        for (uint strip = begin; strip < end; strip += STRIP) {
            const uint n = min(end - strip, (uint)STRIP);
            for (uint r = 0; r < n; r += ROWS) {
                const ulong row = stored_row(&w, 0, strip + r);
                if (n_tiles == 2) {
                    gemm_tiles(&w, row, last, from, tile_floats, 2, acc);
                    collect(acc, 1, r, strips[1]);
                } else {
                    gemm_tiles(&w, row, last, from, tile_floats, 1, acc);
                }
                collect(acc, 0, r, strips[0]);
            }
            for (uint i = 0; i < n_tiles; i++)
                write_strip(strips[i], n, min(t_count - t - i * 16, 16u),
                            bias ? bias + strip : 0,
                            y + (ulong)(t + i * 16) * n_count + strip, n_count);
        }
    }
}
