/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies token rows into expert order: tiles of 16 tokens in lanes, k in the plane order of the
 * weights that read them (planes.h), padded with zeros.
 *
 *     rows[tile][plane_position(k)][lane] = x[source[tile * 16 + lane] / top_k][k]
 *
 * A work-item moves one k of a tile; global size {K padded, tiles}.
 */
#include "planes.h"

__kernel void
moe_gather_ref(__global const STORAGE(SRC) * x, __global const int *tile_expert,
               __global const int *source, __global float *rows, uint k_count,
               uint top_k)
{
    const uint k = (uint)get_global_id(0);
    const ulong tile = get_global_id(1), padded = get_global_size(0);
    if (tile_expert[tile] < 0)
        return;
    __global float *out = rows + (tile * padded + plane_position(k, PLANES)) * 16;
    for (uint lane = 0; lane < 16; lane++) {
        const int slot = source[tile * 16 + lane];
        const bool in = slot >= 0 && k < k_count;
        out[lane] = in ? LOAD(SRC, x, (ulong)((uint)slot / top_k) * k_count + k) : 0.0f;
    }
}
