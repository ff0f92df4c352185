/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of a tile of tokens of one expert; many tokens.
 *
 *     h[tile][plane_position(i)][lane] = act(x . gate[e][i]) * (x . up[e][i]),
 *     e = tile_expert[tile]
 *
 * x and h are tiles (moe_gather); h is in the plane order of the down projection (OUT_PLANES),
 * zero for i >= I. Forms as in gate_up.h. A work-item computes one i of a tile; global size
 * {I padded, tiles}.
 */
#define REAL float16
#include "gate_up.h"
#include "planes.h"

#ifndef OUT_PLANES
#define OUT_PLANES 8 /* planes of the down projection */
#endif

static float16
product(__global const uchar *data, __global const uchar *scale, __global const uchar *zp,
        ulong row, uint n_count, uint k_count, __global const float *x)
{
    const uint group = weight_group(k_count), groups = k_count / group;
    float16 sum = 0;
    for (uint g = 0; g < groups; g++) {
        const float zero = weight_zero_point(zp, row, g, n_count, groups);
        float16 part = 0;
        for (uint k = g * group; k < (g + 1) * group; k++)
            part += (weight_raw(data, row, k, k_count) - zero) *
                    vload16(plane_position(k, PLANES), x);
        sum += part * weight_scale(scale, row, g, n_count, groups);
    }
    return sum;
}

__kernel void
moe_gemm_gate_up_ref(__global const uchar *gate_data, __global const uchar *gate_scale,
                     __global const uchar *gate_zp, __global const uchar *up_data,
                     __global const uchar *up_scale, __global const uchar *up_zp,
                     __global const float *x, __global const int *tile_expert,
                     __global const float *bias, __global float *h, uint i_count,
                     uint k_count, float beta, float limit)
{
    const uint i = (uint)get_global_id(0);
    const ulong tile = get_global_id(1), padded = get_global_size(0);
    const int expert = tile_expert[tile];
    if (expert < 0)
        return;
    x += tile * ((k_count + BLOCK - 1) / BLOCK * BLOCK) * 16;
    float16 value = 0;
    if (i < i_count) {
        const uint n_count = EXPERT_ROWS(i_count);
        const struct gate_up_rows rows = rows_of_expert(expert, i_count);
        const ulong g = rows.gate + i * ROW_STEP, u = rows.up + i * ROW_STEP;
        const float16 gate =
            product(gate_data, gate_scale, gate_zp, g, n_count, k_count, x);
        const float16 up = product(up_data, up_scale, up_zp, u, n_count, k_count, x);
        value =
            gate_times_up(gate + bias_of(bias, g), up + bias_of(bias, u), beta, limit);
    }
    vstore16(value, tile * padded + plane_position(i, OUT_PLANES), h);
}
