/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of a tile of tokens of one expert; many tokens.
 *
 *     h[tile][plane_position(i)][lane] = act(x . gate[e][i]) * (x . up[e][i]),
 *     e = tile_expert[tile]
 *
 * x and h are tiles (moe_gather); h is in the plane order of the down projection (OUT_PLANES), zero
 * for i >= I. Options: gate_up.h. A work-item computes one i of a tile; global size
 * {I padded, tiles}.
 */
#define REAL float16
#include "gate_up.h"
#include "planes.h"

static float16
product(const struct weight *w, ulong row, __global const float *x)
{
    float16 sum = 0;
    for (uint k = 0; k < w->k_count; k++)
        sum += weight_at(w, row, k) * vload16(plane_position(k, PLANES), x);
    return sum;
}

__kernel void
moe_gemm_gate_up_ref(GATE_UP_PARAMETERS, __global const float *x,
                     __global const uint *first_tile, __global const int *tile_expert,
                     __global const int *source, __global float *h, uint i_count,
                     uint k_count)
{
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint i = (uint)get_global_id(0);
    const ulong tile = get_global_id(1), padded = get_global_size(0);
    const int expert = tile_expert[tile];
    if (expert < 0)
        return;
    x += tile * ((k_count + BLOCK - 1) / BLOCK * BLOCK) * 16;
    float16 value = 0;
    if (i < i_count)
        value = gate_times_up(&g, expert, i,
                              product(&gates, stored_row(&gates, expert, i), x),
                              product(&ups, stored_row(&ups, expert, i), x));
    vstore16(value, tile * padded + plane_position(i, OUT_PLANES), h);
}
