/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * in the forms of gate_up.h. A work-item computes per_item neighbouring i of one slot,
 * alternating between a gate row and an up row: long streams. Global size {I / per_item rounded
 * up, slots}, local size 1. The token rows were prepared by linear_prepare_vec.
 */
#include "gate_up.h"
#include "gemv.h"

__kernel void
moe_gate_up_vec(__global const uchar *gate_data, __global const uchar *gate_scale,
                __global const uchar *gate_zp, __global const uchar *up_data,
                __global const uchar *up_scale, __global const uchar *up_zp,
                __global const float *planes, __global const float *sums,
                __global const int *ids, __global const float *bias, __global float *h,
                uint i_count, uint k_count, uint top_k, uint per_item, float beta,
                float limit)
{
    const ulong slot = get_global_id(1);
    const struct gate_up_rows rows = rows_of_expert(ids[slot], i_count);
    const uint padded = (k_count + BLOCK - 1) / BLOCK * BLOCK;
    const uint groups = k_count / weight_group(k_count);
    const uint first = (uint)get_global_id(0) * per_item;
    const uint end = min(first + per_item, i_count);
    planes += slot / top_k * padded;
    sums += slot / top_k * groups;
    for (uint i = first; i < end; i++) {
        const ulong g = rows.gate + i * ROW_STEP, u = rows.up + i * ROW_STEP;
        const float gate =
            sum16(row_dot(gate_data, gate_scale, gate_zp, g, k_count, planes, sums));
        const float up =
            sum16(row_dot(up_data, up_scale, up_zp, u, k_count, planes, sums));
        h[slot * i_count + i] =
            gate_times_up(gate + bias_of(bias, g), up + bias_of(bias, u), beta, limit);
    }
}
