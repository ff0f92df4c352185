/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]),   many tokens
 *
 * A work-item computes per_item (a multiple of ROWS) columns of y for all tokens, two tiles of 16 at
 * a time: the tiles stay in cache while the rows pass. Global size {N / per_item, rounded up}, local
 * size 1. x was packed by linear_pack_vec.
 */
#include "gemm.h"

#ifndef DST
#define DST f32 /* element of y */
#endif

static inline void
store_tile(__global STORAGE(DST) * y, float16 acc[ROWS][2], uint which, ulong t,
           uint t_count, uint first, uint n_count, __global const float *bias)
{
    float lanes[ROWS][16];
    for (uint r = 0; r < ROWS; r++)
        vstore16(acc[r][which], 0, lanes[r]);
    for (uint lane = 0; lane < 16 && t + lane < t_count; lane++) {
        for (uint r = 0; r < ROWS && first + r < n_count; r++)
            STORE(DST, y, (t + lane) * n_count + first + r,
                  lanes[r][lane] + (bias ? bias[first + r] : 0.0f));
    }
}

__kernel void
linear_gemm_vec(__global const uchar *data, __global const uchar *scale,
                __global const uchar *zp, __global const float *tiles,
                __global const float *bias, __global STORAGE(DST) * y, uint n_count,
                uint k_count, uint t_count, uint per_item)
{
    const uint begin = (uint)get_global_id(0) * per_item;
    const uint end = min(begin + per_item, n_count);
    const ulong tile_floats = (ulong)(k_count + BLOCK - 1) / BLOCK * BLOCK * 16;
    float16 acc[ROWS][2];
    for (uint t = 0; t < t_count; t += 32) {
        __global const float *x = tiles + t / 16 * tile_floats;
        for (uint first = begin; first < end; first += ROWS) {
            if (t + 16 < t_count) {
                gemm_tiles(data, scale, zp, first, 1, n_count - 1, k_count, x,
                           tile_floats, 2, acc);
                store_tile(y, acc, 1, t + 16, t_count, first, n_count, bias);
            } else {
                gemm_tiles(data, scale, zp, first, 1, n_count - 1, k_count, x,
                           tile_floats, 1, acc);
            }
            store_tile(y, acc, 0, t, t_count, first, n_count, bias);
        }
    }
}
