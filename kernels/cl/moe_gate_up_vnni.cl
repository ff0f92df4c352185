/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * CLAMPED: gate holds both, interleaved: row 2i is the gate's, row 2i + 1 up's; with biases and
 * the clamped activation (activation.h). A work-item computes per_item neighbouring i of one slot,
 * alternating between a gate row and an up row: two long streams. Global size {I / per_item rounded
 * up, slots}, local size 1. The token rows were prepared by linear_prepare_vnni.
 */
#include "activation.h"
#include "short_gemv.h"

#ifndef CLAMPED
#define CLAMPED 0
#endif

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
    const ulong slot = get_global_id(1), expert = (ulong)ids[slot];
    const uint groups = k_count / GROUP;
    const uint first = (uint)get_global_id(0) * per_item;
    const uint end = min(first + per_item, i_count);
    x += slot / top_k * short_row_words((k_count + BLOCK - 1) / BLOCK, PLANES);
    sums += slot / top_k * groups;
    for (uint i = first; i < end; i++) {
#if CLAMPED
        const ulong row = (expert * i_count + i) * 2;
        float gate =
            sum16(short_row_dot(gate_data, gate_scale, gate_zp, row, k_count, x, sums));
        float up = sum16(
            short_row_dot(gate_data, gate_scale, gate_zp, row + 1, k_count, x, sums));
        if (bias) {
            gate += bias[row];
            up += bias[row + 1];
        }
        h[slot * i_count + i] = gated_clamped(gate, up, beta, limit);
#else
        const ulong row = expert * i_count + i;
        const float gate =
            sum16(short_row_dot(gate_data, gate_scale, gate_zp, row, k_count, x, sums));
        const float up =
            sum16(short_row_dot(up_data, up_scale, up_zp, row, k_count, x, sums));
        h[slot * i_count + i] = gated(gate, up, beta);
#endif
    }
#endif
}
