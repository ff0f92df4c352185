/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n])
 *
 * Many tokens, on matrix engines: the tiles of linear_pack_sg, in pairs. A sub-group computes 16
 * neighbouring n of two tiles. Global size {N / 16 rounded up * SG, tiles / 2 rounded up}.
 */
#ifndef DST
#define DST f16 /* element of y */
#endif
#include "sub_group_matrix.h"

SUB_GROUP_SIZE __kernel void
linear_gemm_dpas(WEIGHT_PARAMETERS(w), __global const uint *x,
                 __global const float *bias, __global STORAGE(DST) * y, uint n_count,
                 uint k_count, uint t_count)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = sub_group_index() * ROW_BLOCKS * 8;
    const uint tile = (uint)get_group_id(1) * TILES;
    float8 acc[ROW_BLOCKS][TOKEN_BLOCKS];
    struct row_block rows[ROW_BLOCKS];
    if (first >= n_count)
        return;
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++)
        rows[r] = row_block_at(&w, stored_row(&w, 0, first + r * 8),
                               stored_row(&w, 0, n_count - 1));
    multiply_tiles(rows, x, tile, (t_count - 1) / 16, acc);
#pragma unroll
    for (uint t = 0; t < TOKEN_BLOCKS; t++) {
        const uint token = tile * 16 + t * SG + get_sub_group_local_id();
#pragma unroll
        for (uint r = 0; r < ROW_BLOCKS; r++) {
            const uint n = first + r * 8;
            if (token < t_count && n < n_count)
                store_rows(acc[r][t], bias ? bias + n : 0, y + (ulong)token * n_count + n,
                           n_count - n);
        }
    }
}
