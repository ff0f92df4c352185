/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * in the forms of gate_up.h. A work-item computes one element; global size {I, slots}.
 */
#include "gate_up.h"
#include "weights.h"

#ifndef SRC
#define SRC f32 /* element of x */
#endif

static float
product(__global const uchar *data, __global const uchar *scale, __global const uchar *zp,
        ulong row, uint n_count, uint k_count, __global const STORAGE(SRC) * x)
{
    const uint group = weight_group(k_count), groups = k_count / group;
    float sum = 0;
    for (uint g = 0; g < groups; g++) {
        const float zero = weight_zero_point(zp, row, g, n_count, groups);
        float part = 0;
        for (uint k = g * group; k < (g + 1) * group; k++)
            part += (weight_raw(data, row, k, k_count) - zero) * LOAD(SRC, x, k);
        sum += part * weight_scale(scale, row, g, n_count, groups);
    }
    return sum;
}

__kernel void
moe_gate_up_ref(__global const uchar *gate_data, __global const uchar *gate_scale,
                __global const uchar *gate_zp, __global const uchar *up_data,
                __global const uchar *up_scale, __global const uchar *up_zp,
                __global const STORAGE(SRC) * x, __global const int *ids,
                __global const float *bias, __global float *h, uint k_count, uint top_k,
                float beta, float limit)
{
    const uint i = (uint)get_global_id(0), i_count = (uint)get_global_size(0);
    const ulong slot = get_global_id(1);
    x += slot / top_k * k_count;
    const uint n_count = EXPERT_ROWS(i_count);
    const struct gate_up_rows rows = rows_of_expert(ids[slot], i_count);
    const ulong g = rows.gate + i * ROW_STEP, u = rows.up + i * ROW_STEP;
    const float gate = product(gate_data, gate_scale, gate_zp, g, n_count, k_count, x);
    const float up = product(up_data, up_scale, up_zp, u, n_count, k_count, x);
    h[slot * i_count + i] =
        gate_times_up(gate + bias_of(bias, g), up + bias_of(bias, u), beta, limit);
}
