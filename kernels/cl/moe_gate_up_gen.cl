/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * in the forms of gate_up.h. A work-group of ITEMS makes ROWS elements of a slot; groups
 * {I / ROWS, slots}.
 */
#include "gate_up.h"
#include "row_dots.h"

__kernel void
moe_gate_up_gen(__global const uchar *gate_data, __global const uchar *gate_scale,
                __global const uchar *gate_zp, __global const uchar *up_data,
                __global const uchar *up_scale, __global const uchar *up_zp,
                __global const STORAGE(SRC) *x, __global const int *ids,
                __global const float *bias, __global float *h, uint i_count, uint k_count,
                uint top_k, float beta, float limit)
{
    __local float chunk[CHUNK_FLOATS], parts[2 * ROWS * ITEMS];
    const uint i = (uint)get_group_id(0) * ROWS, me = get_local_id(0);
    const ulong slot = get_group_id(1);
    const uint n_count = EXPERT_ROWS(i_count);
    const struct weight gates = {gate_data, gate_scale, gate_zp, n_count, k_count};
    const struct weight ups = {up_data, up_scale, up_zp, n_count, k_count};
    const struct gate_up_rows rows = rows_of_expert(ids[slot], i_count);
    const ulong g = rows.gate + i * ROW_STEP, gate_end = last_row(rows.gate, i_count) + 1;
    const ulong u = rows.up + i * ROW_STEP, up_end = last_row(rows.up, i_count) + 1;
    float sum[2 * ROWS]; /* of gate, then of up */
    for (uint r = 0; r < 2 * ROWS; r++)
        sum[r] = 0.0f;
    x += slot / top_k * k_count;
    for (uint k = 0; k < k_count; k += CHUNK) {
        stage_chunk(chunk, x, k, k_count);
        add_rows(&gates, g, gate_end, k, chunk, 1.0f, sum);
        add_rows(&ups, u, up_end, k, chunk, 1.0f, sum + ROWS);
    }
    group_sums(parts, sum, 2 * ROWS);
    for (uint r = 0; r < ROWS; r++) {
        if (me == r && i + r < i_count)
            h[slot * i_count + i + r] = gate_times_up(
                sum[r] + bias_of(bias, g + r * ROW_STEP),
                sum[ROWS + r] + bias_of(bias, u + r * ROW_STEP), beta, limit);
    }
}
