/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * CLAMPED as in moe_gate_up_ref. A work-group of ITEMS makes HIDDEN_ROWS elements of a slot;
 * groups {I / HIDDEN_ROWS, slots}.
 */
#include "activation.h"
#include "row_dots.h"

#ifndef CLAMPED
#define CLAMPED 0
#endif
/* Interleaved rows of gate and up come from one weight: ROWS of them make half as many i. */
#define HIDDEN_ROWS (CLAMPED ? ROWS / 2 : ROWS)

__kernel void
moe_gate_up_gen(__global const uchar *gate_data, __global const uchar *gate_scale,
                __global const uchar *gate_zp, __global const uchar *up_data,
                __global const uchar *up_scale, __global const uchar *up_zp,
                __global const STORAGE(SRC) *x, __global const int *ids,
                __global const float *bias, __global float *h, uint i_count, uint k_count,
                uint top_k, float beta, float limit)
{
    __local float chunk[CHUNK_FLOATS], parts[2 * ROWS * ITEMS];
    const uint i = (uint)get_group_id(0) * HIDDEN_ROWS, me = get_local_id(0);
    const ulong slot = get_group_id(1);
    const uint n_count = CLAMPED ? 2 * i_count : i_count;
    const struct weight gates = {gate_data, gate_scale, gate_zp, n_count, k_count};
    const struct weight ups = {up_data, up_scale, up_zp, n_count, k_count};
    const ulong first = (ulong)ids[slot] * n_count, end = first + n_count;
    const ulong row = first + (CLAMPED ? 2 * i : i);
    float sum[2 * ROWS]; /* of gate, then of up */
    for (uint r = 0; r < 2 * ROWS; r++)
        sum[r] = 0.0f;
    x += slot / top_k * k_count;
    for (uint k = 0; k < k_count; k += CHUNK) {
        stage_chunk(chunk, x, k, k_count);
        add_rows(&gates, row, end, k, chunk, 1.0f, sum);
        if (!CLAMPED)
            add_rows(&ups, row, end, k, chunk, 1.0f, sum + ROWS);
    }
    group_sums(parts, sum, CLAMPED ? ROWS : 2 * ROWS);
    for (uint r = 0; r < HIDDEN_ROWS; r++) {
        if (me != r || i + r >= i_count)
            continue;
#if CLAMPED
        const float gate = sum[2 * r] + (bias ? bias[row + 2 * r] : 0.0f);
        const float up = sum[2 * r + 1] + (bias ? bias[row + 2 * r + 1] : 0.0f);
        h[slot * i_count + i + r] = gated_clamped(gate, up, beta, limit);
#else
        h[slot * i_count + i + r] = gated(sum[r], sum[ROWS + r], beta);
#endif
    }
}
