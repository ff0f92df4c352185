/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * CLAMPED: gate holds both, interleaved: row 2i is the gate's, row 2i + 1 up's; with biases and
 * the clamped activation (activation.h). A sub-group computes ROWS neighbouring i of one slot, K
 * across its lanes. Global size {I / ROWS rounded up * SG, slots}.
 */
#include "activation.h"
#include "sub_group_gemv.h"

#ifndef CLAMPED
#define CLAMPED 0
#endif

SUB_GROUP_SIZE __kernel void
moe_gate_up_sg(__global const uchar *gate_data, __global const uchar *gate_scale,
               __global const uchar *gate_zp, __global const uchar *up_data,
               __global const uchar *up_scale, __global const uchar *up_zp,
               __global const STORAGE(SRC) * x, __global const int *ids,
               __global const float *bias, __global float *h, uint i_count, uint k_count,
               uint top_k, float beta, float limit)
{
    const uint first = sub_group_index() * ROWS;
    const uint i = first + get_sub_group_local_id();
    const ulong slot = get_group_id(1), expert = (ulong)ids[slot];
    float sum[ROWS];
    if (first >= i_count)
        return;
    x += slot / top_k * k_count;
#if CLAMPED
    const uint n_count = 2 * i_count;
    const ulong row = expert * n_count, last = row + n_count - 1;
    rows_dot(gate_data, gate_scale, gate_zp, row + 2 * first, 2, last - 1, n_count,
             k_count, x, sum);
    float gate = lane_total(sum);
    rows_dot(gate_data, gate_scale, gate_zp, row + 2 * first + 1, 2, last, n_count,
             k_count, x, sum);
    float up = lane_total(sum);
#else
    const ulong row = expert * i_count, last = row + i_count - 1;
    rows_dot(gate_data, gate_scale, gate_zp, row + first, 1, last, i_count, k_count, x,
             sum);
    const float gate = lane_total(sum);
    rows_dot(up_data, up_scale, up_zp, row + first, 1, last, i_count, k_count, x, sum);
    const float up = lane_total(sum);
#endif
    if (get_sub_group_local_id() >= ROWS || i >= i_count)
        return;
#if CLAMPED
    if (bias) {
        gate += bias[row + 2 * i];
        up += bias[row + 2 * i + 1];
    }
    h[slot * i_count + i] = gated_clamped(gate, up, beta, limit);
#else
    h[slot * i_count + i] = gated(gate, up, beta);
#endif
}
