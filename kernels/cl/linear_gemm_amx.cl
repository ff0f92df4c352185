/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]),   many tokens
 *
 * A work-item computes 16 * VECTORS columns of y for up to MOST_TOKENS tokens. Global size
 * {N / (16 * VECTORS), T / MOST_TOKENS} rounded up, local size 1. x was packed by linear_pack_amx.
 */
#define SHORTS  1
#define X_PAIRS 1
#include "bf16_gemm.h"

__kernel void
linear_gemm_amx(WEIGHT_PARAMETERS(w), __global const uint *x, __global const float *bias,
                __global STORAGE(DST) * y, uint n_count, uint k_count, uint t_count)
{
#if GROUP || BLOCKS
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = (uint)get_global_id(0) * TILE_ROWS;
    const uint begin = (uint)get_global_id(1) * MOST_TOKENS;
    const uint tokens = min(t_count - begin, (uint)MOST_TOKENS), tiles = (tokens + 15) / 16;
    tile_sums c[VECTORS][MOST_TILES];
    struct short_rows rows[VECTORS];
    for (uint v = 0; v < VECTORS; v++)
        rows[v] = (struct short_rows){w, stored_row(&w, 0, first + v * 16),
                                      stored_row(&w, 0, n_count - 1), TILE_ROWS};
    bf16_gemm(rows, x + begin / 16 * bf16_tile_words(k_count), tiles, c);
    for (uint n = 0; n < tiles; n++)
        put_tile(c, n, min(tokens - 16 * n, 16u), n_count - first, bias ? bias + first : 0,
                 y, (ulong)(begin + 16 * n) * n_count + first, n_count);
#endif
}
