/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of a tile of 16 tokens of one expert; many tokens.
 *
 *     h[tile][plane_position(i)][lane] = act(x . gate[e][i]) * (x . up[e][i])
 *
 * e = tile_expert[tile]; layouts as in moe_gemm_gate_up_ref, options as in gate_up.h. A work-group
 * of ITEMS computes HALF of i: HALF rows of gate and HALF of up are the 64 rows of its tile; groups
 * {I padded / HALF, tiles}.
 */
#include "gate_up.h"
#include "expert_tile.h"

#define HALF (TILE_N / 2)

__kernel void
moe_gemm_gate_up_gen(GATE_UP_PARAMETERS, __global const float *x,
                     __global const uint *first_tile, __global const int *tile_expert,
                     __global const int *source, __global float *h, uint i_count,
                     uint k_count)
{
    __local float w[TILE_K * W_COLUMNS], xs[TILE_K * X_COLUMNS];
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint first = (uint)get_group_id(0) * HALF;
    const ulong tile = get_group_id(1);
    const int expert = tile_expert[tile];
    if (expert < 0) /* equal in the whole work-group */
        return;
    const uint padded = padded_columns(i_count, OUT_PLANES);
    const ulong gate_end = stored_row(&gates, expert, i_count);
    const ulong up_end = stored_row(&ups, expert, i_count);
    float sum[REG_N][REG_T];
    clear_block(sum);
    x += tile * padded_columns(k_count, PLANES) * 16;
    uint k = 0;
    do { /* runs at least once (group.h) */
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_weights(w, HALF, &gates, stored_row(&gates, expert, first), gate_end, k);
        stage_weights(w + HALF, HALF, &ups, stored_row(&ups, expert, first), up_end, k);
        stage_lanes(xs, x, k, k_count);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_tile(w, xs, sum);
        k += TILE_K;
    } while (k < k_count);
    for (uint r = 0; r < REG_N / 2; r++) {
        const uint i = first + block_row(r);
        for (uint j = 0; j < REG_T && i < padded; j++) {
            float value = 0.0f;
            if (i < i_count)
                value = gate_times_up(&g, expert, i, sum[r][j], sum[r + REG_N / 2][j]);
            h[(tile * padded + plane_position(i, OUT_PLANES)) * 16 + block_token(j)] =
                value;
        }
    }
}
