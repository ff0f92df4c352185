/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n])
 *
 * A work-group of ITEMS computes 64 rows by 64 tokens; groups {N / 64, T / 64}.
 */
#ifndef ITEMS
#define ITEMS 128
#endif
#define TILE_T    64
#define ROW_LANES 8
#include "gemm_tile.h"

static void
stage_tokens(__local float *to, __global const STORAGE(SRC) *x, ulong token,
             ulong tokens, uint first, uint k_count)
{
    for (uint i = get_local_id(0); i < TILE_T * TILE_K; i += ITEMS) {
        const uint k = i % TILE_K, t = i / TILE_K;
        const bool in = token + t < tokens && first + k < k_count;
        to[k * X_COLUMNS + t] =
            in ? LOAD(SRC, x, (token + t) * k_count + first + k) : 0.0f;
    }
}

__kernel void
linear_gemm_gen(WEIGHT_PARAMETERS(w), __global const STORAGE(SRC) *x,
                __global const float *bias, __global STORAGE(DST) *y, uint n_count,
                uint k_count, uint t_count)
{
    __local float ws[TILE_K * W_COLUMNS], xs[TILE_K * X_COLUMNS];
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint row = (uint)get_group_id(0) * TILE_N;
    const ulong token = get_group_id(1) * TILE_T;
    float sum[REG_N][REG_T];
    clear_block(sum);
    uint k = 0;
    do { /* runs at least once (group.h) */
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_weights(ws, TILE_N, &w, stored_row(&w, 0, row),
                      stored_row(&w, 0, n_count), k);
        stage_tokens(xs, x, token, t_count, k, k_count);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_tile(ws, xs, sum);
        k += TILE_K;
    } while (k < k_count);
    for (uint i = 0; i < REG_N; i++) {
        const uint n = row + block_row(i);
        for (uint j = 0; j < REG_T; j++) {
            const ulong t = token + block_token(j);
            if (n < n_count && t < t_count)
                STORE(DST, y, t * n_count + n, sum[i][j] + (bias ? bias[n] : 0.0f));
        }
    }
}
