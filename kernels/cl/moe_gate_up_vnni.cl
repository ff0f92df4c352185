/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * in the forms of gate_up.h. A work-item computes per_item neighbouring i of one slot,
 * alternating between a gate row and an up row: long streams. Global size {I / per_item rounded
 * up, slots}, local size 1. The token rows were prepared by linear_prepare_vnni.
 */
#include "gate_up.h"
#include "short_gemv.h"

__kernel void
moe_gate_up_vnni(__global const uchar *gate_data, __global const uchar *gate_scale,
                 __global const uchar *gate_zp, __global const uchar *up_data,
                 __global const uchar *up_scale, __global const uchar *up_zp,
                 __global const int *x, __global const float *sums,
                 __global const int *ids, __global const float *bias, __global float *h,
                 uint i_count, uint k_count, uint top_k, uint per_item, float beta,
                 float limit)
{
#ifdef KEEP
    const ulong slot = get_global_id(1);
    const struct gate_up_rows rows = rows_of_expert(ids[slot], i_count);
    const uint groups = k_count / GROUP;
    const uint first = (uint)get_global_id(0) * per_item;
    const uint end = min(first + per_item, i_count);
    x += slot / top_k * short_row_words((k_count + BLOCK - 1) / BLOCK, PLANES);
    sums += slot / top_k * groups;
    for (uint i = first; i < end; i++) {
        const ulong g = rows.gate + i * ROW_STEP, u = rows.up + i * ROW_STEP;
        const float gate =
            sum16(short_row_dot(gate_data, gate_scale, gate_zp, g, k_count, x, sums));
        const float up =
            sum16(short_row_dot(up_data, up_scale, up_zp, u, k_count, x, sums));
        h[slot * i_count + i] =
            gate_times_up(gate + bias_of(bias, g), up + bias_of(bias, u), beta, limit);
    }
#endif
}
