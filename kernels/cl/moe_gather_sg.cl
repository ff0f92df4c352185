/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies token rows into expert order, in tiles:
 *
 *     rows[tile][plane_position(k)][lane] = x[source[tile * 16 + lane] / top_k][k]
 *
 * A sub-group packs one block of a tile, each lane one token. Global size {blocks * SG, tiles}.
 */
#include "sub_group_pack.h"

SUB_GROUP_SIZE __kernel void
moe_gather_sg(__global const STORAGE(SRC) * x, __global const int *tile_expert,
              __global const int *source, __global STORAGE(TILE) * rows, uint k_count,
              uint top_k)
{
    const uint blocks = (k_count + BLOCK - 1) / BLOCK, b = sub_group_index();
    const uint lane = get_sub_group_local_id();
    const ulong tile = get_group_id(1);
    if (b >= blocks || lane >= 16 || tile_expert[tile] < 0)
        return;
    const int slot = source[tile * 16 + lane];
    pack_block(x + (ulong)((uint)max(slot, 0) / top_k) * k_count, slot < 0 ? 0 : k_count,
               b, lane, rows + tile * blocks * BLOCK * 16);
}
