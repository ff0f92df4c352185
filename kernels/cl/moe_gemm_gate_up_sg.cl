/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of a tile of tokens of one expert; many tokens.
 *
 *     h[tile][plane_position(i)][t] = act(x_t . gate[e][i]) * (x_t . up[e][i])
 *
 * e = tile_expert[tile]. x and h are tiles (moe_gather); h is in the plane order of the down
 * projection (OUT_PLANES), zero for i >= I. Options: gate_up.h. A sub-group computes SG
 * neighbouring i, each lane one, of half a tile. Global size {I padded rounded up to SG, 2 tiles}.
 */
#define MATRICES 2
#include "gate_up.h"
#include "sub_group_gemm.h"

SUB_GROUP_SIZE __kernel void
moe_gemm_gate_up_sg(GATE_UP_PARAMETERS, __global const STORAGE(TILE) * x,
                    __global const uint *first_tile, __global const int *tile_expert,
                    __global const int *source, __global float *h, uint i_count,
                    uint k_count)
{
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint out_block = 16 * OUT_PLANES;
    const uint padded = (i_count + out_block - 1) / out_block * out_block;
    const uint first = sub_group_index() * SG, i = first + get_sub_group_local_id();
    const uint mine = min(i, i_count - 1);
    const ulong tile = get_group_id(1) / 2;
    const uint first_token = get_group_id(1) % 2 * TOKENS;
    const int expert = tile_expert[tile];
    float acc[2][TOKENS];
    if (expert < 0 || first >= padded)
        return;
    const struct lane_row row[2] = {
        lane_row_at(&gates, stored_row(&gates, expert, mine)),
        lane_row_at(&ups, stored_row(&ups, expert, mine))};
    multiply_tile(row, x + tile * ((k_count + BLOCK - 1) / BLOCK * BLOCK) * 16, first_token,
                  acc);
    if (i >= padded)
        return;
    h += (tile * padded + plane_position(i, OUT_PLANES)) * 16 + first_token;
#pragma unroll
    for (uint t = 0; t < TOKENS; t++) {
        const float value = gate_times_up(&g, expert, mine, acc[0][t], acc[1][t]);
        h[t] = i < i_count ? value : 0.0f;
    }
}
