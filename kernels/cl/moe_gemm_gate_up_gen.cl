/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of a tile of 16 tokens of one expert; many tokens.
 *
 *     h[tile][plane_position(i)][lane] = act(x . gate[e][i]) * (x . up[e][i])
 *
 * e = tile_expert[tile]; layouts and CLAMPED as in moe_gemm_gate_up_ref. A work-group of ITEMS
 * makes HALF of i: HALF rows of gate and HALF of up are the 64 rows of its tile; groups
 * {I padded / HALF, tiles}.
 */
#ifndef CLAMPED
#define CLAMPED 0
#endif
#define HALF (TILE_N / 2)
#if CLAMPED /* gate and up alternate */
#define TILE_COLUMN(row) ((row) / 2 + (row) % 2 * HALF)
#endif
#include "activation.h"
#include "expert_tile.h"

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
    const uint n_count = CLAMPED ? 2 * i_count : i_count;
    const ulong base = (ulong)expert * n_count, end = base + n_count;
    const struct weight gates = {gate_data, gate_scale, gate_zp, n_count, k_count};
    const struct weight ups = {up_data, up_scale, up_zp, n_count, k_count};
    float sum[REG_N][REG_T];
    clear_block(sum);
    x += tile * padded_columns(k_count, PLANES) * 16;
    for (uint k = 0; k < k_count; k += TILE_K) {
        barrier(CLK_LOCAL_MEM_FENCE);
#if CLAMPED
        stage_weights(w, TILE_N, &gates, base + 2 * first, end, k);
#else
        stage_weights(w, HALF, &gates, base + first, end, k);
        stage_weights(w + HALF, HALF, &ups, base + first, end, k);
#endif
        stage_lanes(xs, x, k, k_count);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_tile(w, xs, sum);
    }
    for (uint r = 0; r < REG_N / 2; r++) {
        const uint i = first + block_row(r);
        const bool in = i < i_count;
        for (uint j = 0; j < REG_T && i < padded; j++) {
            float gate = sum[r][j], up = sum[r + REG_N / 2][j];
#if CLAMPED
            gate += bias && in ? bias[base + 2 * i] : 0.0f;
            up += bias && in ? bias[base + 2 * i + 1] : 0.0f;
            const float value = gated_clamped(gate, up, beta, limit);
#else
            const float value = gated(gate, up, beta);
#endif
            h[(tile * padded + plane_position(i, OUT_PLANES)) * 16 + block_token(j)] =
                in ? value : 0.0f;
        }
    }
}
