/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n])
 *
 * Many tokens, on matrix engines (step_gemm.h). A sub-group, or the SHARES of a work-group,
 * computes ROW_BLOCKS * SG neighbouring n of up to GROUP_TILES tiles that linear_pack_dpas packed.
 * Global size {N / (ROW_BLOCKS * SG) rounded up * SHARES * SG, tiles / GROUP_TILES rounded up}.
 */
#ifndef DST
#define DST f16 /* type of y */
#endif
#include "step_gemm.h"

GEMM_GROUP __kernel void
linear_gemm_dpas(WEIGHT_PARAMETERS(w), __global const ushort *x,
                 __global const float *bias, __global STORAGE(DST) * y, uint n_count,
                 uint k_count, uint t_count)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = row_index() * (ROW_BLOCKS * SG);
    const uint first_tile = (uint)get_group_id(1) * GROUP_TILES;
    const uint lane = get_sub_group_local_id();
    struct product p;
    float8 acc[ROW_BLOCKS][TOKEN_BLOCKS];
    if (first >= n_count)
        return;
    SHARED_HALVES(p)
    p.x = tiles_from(x, first_tile, (t_count - 1) / 16, k_count);
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++)
        take_row(&p, r, &w, 0, min(first + r * SG + lane, n_count - 1));
    clear(acc);
    if (SHARES > 1)
        multiply_tiles(0, &p, ROW_BLOCKS, k_count, acc);
    else /* compiles to one loop, also for few tokens */
        multiply_rows(0, &p, ROW_BLOCKS, TOKEN_TILES, k_count, acc);
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++) {
        const uint n = first + r * SG + lane;
        const float bias_n = bias && n < n_count ? bias[n] : 0.0f;
        const float factor = product_factor(&w, 0);
#pragma unroll
        for (uint b = 0; b < TOKEN_BLOCKS; b++) {
            float of[8];
            vstore8(acc[r][b] * factor + bias_n, 0, of);
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                const uint t = p.x.first * 16 + b * 8 + i;
                const bool is_own = SHARES == 1 || b / 2 < p.x.n;
                if (is_own && n < n_count && t < t_count)
                    STORE(DST, y, (ulong)t * n_count + n, of[i]);
            }
        }
    }
}
