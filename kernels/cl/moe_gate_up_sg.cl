/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * in the forms of gate_up.h. A sub-group computes ROWS neighbouring i of one slot, K across its
 * lanes. Global size {I / ROWS rounded up * SG, slots}.
 */
#include "gate_up.h"
#include "sub_group_gemv.h"

SUB_GROUP_SIZE __kernel void
moe_gate_up_sg(__global const uchar *gate_data, __global const uchar *gate_scale,
               __global const uchar *gate_zp, __global const uchar *up_data,
               __global const uchar *up_scale, __global const uchar *up_zp,
               __global const STORAGE(SRC) * x, __global const int *ids,
               __global const float *bias, __global float *h, uint i_count, uint k_count,
               uint top_k, float beta, float limit)
{
    const uint first = sub_group_index() * ROWS;
    const uint i = first + get_sub_group_local_id(), n_count = EXPERT_ROWS(i_count);
    const ulong slot = get_group_id(1);
    const struct gate_up_rows rows = rows_of_expert(ids[slot], i_count);
    float sum[ROWS];
    if (first >= i_count)
        return;
    x += slot / top_k * k_count;
    rows_dot(gate_data, gate_scale, gate_zp, rows.gate + first * ROW_STEP, ROW_STEP,
             last_row(rows.gate, i_count), n_count, k_count, x, sum);
    const float gate = lane_total(sum);
    rows_dot(up_data, up_scale, up_zp, rows.up + first * ROW_STEP, ROW_STEP,
             last_row(rows.up, i_count), n_count, k_count, x, sum);
    const float up = lane_total(sum);
    if (get_sub_group_local_id() < ROWS && i < i_count)
        h[slot * i_count + i] =
            gate_times_up(gate + bias_of(bias, rows.gate + i * ROW_STEP),
                          up + bias_of(bias, rows.up + i * ROW_STEP), beta, limit);
}
