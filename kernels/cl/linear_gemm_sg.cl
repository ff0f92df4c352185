/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n])
 *
 * Many tokens, in tiles that linear_pack_sg packed. A sub-group computes SG neighbouring n of one
 * tile.
 * Global size {N rounded up to SG, tiles}.
 */
#include "sub_group_gemm.h"

SUB_GROUP_SIZE __kernel void
linear_gemm_sg(WEIGHT_PARAMETERS(w), __global const STORAGE(TILE) * x,
               __global const float *bias, __global STORAGE(DST) * y, uint n_count,
               uint k_count, uint t_count)
{
    const uint n = sub_group_index() * SG + get_sub_group_local_id();
    const uint tile = (uint)get_group_id(1),
               padded = (k_count + BLOCK - 1) / BLOCK * BLOCK;
    const struct weight w = WEIGHT(w, k_count, 0);
    const struct lane_row row[1] = {
        lane_row_at(&w, stored_row(&w, 0, min(n, n_count - 1)))};
    float acc[1][TOKENS];
    if (sub_group_index() * SG >= n_count)
        return;
    multiply_tile(row, x + (ulong)tile * padded * 16, 0, acc);
    const float b = bias ? bias[min(n, n_count - 1)] : 0.0f;
#pragma unroll
    for (uint t = 0; t < 16; t++) {
        if (n < n_count && tile * 16 + t < t_count)
            STORE(DST, y, (ulong)(tile * 16 + t) * n_count + n, acc[0][t] + b);
    }
}
