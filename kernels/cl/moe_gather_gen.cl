/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies token rows into expert order: tiles of 16 tokens in lanes, k in the plane order of the
 * weights that read them, padded with zeros.
 *
 *     rows[tile][plane_position(k)][lane] = x[source[tile * 16 + lane] / top_k][k]
 *
 * A work-group of ITEMS transposes ITEMS of k in local memory; groups {K padded / ITEMS, tiles}.
 */
#include "expert_tile.h"

__kernel void
moe_gather_gen(__global const STORAGE(SRC) *x, __global const int *tile_expert,
               __global const int *source, __global float *rows, uint k_count,
               uint top_k)
{
    __local float turned[ITEMS * 17];
    const uint first = (uint)get_group_id(0) * ITEMS, me = get_local_id(0);
    const ulong tile = get_group_id(1);
    const uint padded = padded_columns(k_count, PLANES);
    if (tile_expert[tile] < 0) /* equal in the whole work-group */
        return;
    for (uint lane = 0; lane < 16; lane++) {
        const int slot = source[tile * 16 + lane];
        const bool in = slot >= 0 && first + me < k_count;
        turned[me * 17 + lane] =
            in ? LOAD(SRC, x, (ulong)((uint)slot / top_k) * k_count + first + me) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < ITEMS * 16; i += ITEMS) {
        const uint k = i / 16, lane = i % 16;
        if (first + k < padded)
            rows[(tile * padded + plane_position(first + k, PLANES)) * 16 + lane] =
                turned[k * 17 + lane];
    }
}
