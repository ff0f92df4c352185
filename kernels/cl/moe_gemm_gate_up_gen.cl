/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of a tile of 16 tokens of one expert; many tokens.
 *
 *     h[tile][plane_position(i)][lane] = act(x . gate[e][i]) * (x . up[e][i])
 *
 * e = tile_expert[tile]; layouts as in moe_gemm_gate_up_ref, forms as in gate_up.h. A work-group of
 * ITEMS makes HALF of i: HALF rows of gate and HALF of up are the 64 rows of its tile; groups
 * {I padded / HALF, tiles}.
 */
#include "gate_up.h"
#include "expert_tile.h"

#define HALF (TILE_N / 2)
#ifndef OUT_PLANES
#define OUT_PLANES 8 /* planes of the down projection */
#endif

__kernel void
moe_gemm_gate_up_gen(__global const uchar *gate_data, __global const uchar *gate_scale,
                     __global const uchar *gate_zp, __global const uchar *up_data,
                     __global const uchar *up_scale, __global const uchar *up_zp,
                     __global const float *x, __global const int *tile_expert,
                     __global const float *bias, __global float *h, uint i_count,
                     uint k_count, float beta, float limit)
{
    __local float w[TILE_K * W_COLUMNS], xs[TILE_K * X_COLUMNS];
    const uint first = (uint)get_group_id(0) * HALF;
    const ulong tile = get_group_id(1);
    const int expert = tile_expert[tile];
    if (expert < 0) /* the same for the whole group */
        return;
    const uint padded = padded_columns(i_count, OUT_PLANES);
    const uint n_count = EXPERT_ROWS(i_count);
    const struct gate_up_rows rows = rows_of_expert(expert, i_count);
    const ulong gate_end = last_row(rows.gate, i_count) + 1;
    const ulong up_end = last_row(rows.up, i_count) + 1;
    const struct weight gates = {gate_data, gate_scale, gate_zp, n_count, k_count};
    const struct weight ups = {up_data, up_scale, up_zp, n_count, k_count};
    float sum[REG_N][REG_T];
    clear_block(sum);
    x += tile * padded_columns(k_count, PLANES) * 16;
    for (uint k = 0; k < k_count; k += TILE_K) {
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_weights(w, HALF, &gates, rows.gate + first * ROW_STEP, gate_end, k);
        stage_weights(w + HALF, HALF, &ups, rows.up + first * ROW_STEP, up_end, k);
        stage_lanes(xs, x, k, k_count);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_tile(w, xs, sum);
    }
    for (uint r = 0; r < REG_N / 2; r++) {
        const uint i = first + block_row(r);
        const bool in = i < i_count;
        const float gate_bias = in ? bias_of(bias, rows.gate + i * ROW_STEP) : 0.0f;
        const float up_bias = in ? bias_of(bias, rows.up + i * ROW_STEP) : 0.0f;
        for (uint j = 0; j < REG_T && i < padded; j++) {
            const float value =
                gate_times_up(sum[r][j] + gate_bias, sum[r + REG_N / 2][j] + up_bias,
                              beta, limit);
            h[(tile * padded + plane_position(i, OUT_PLANES)) * 16 + block_token(j)] =
                in ? value : 0.0f;
        }
    }
}
