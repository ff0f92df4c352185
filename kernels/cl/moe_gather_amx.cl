/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies token rows into expert order as tiles of bf16 (bf16_tiles.h): row p is
 * x[source[p] / top_k], zeros where source[p] is negative.
 *
 * A work-item packs a tile. Global size {tiles}, local size 1.
 */
#include "bf16_tiles.h"

__kernel void
moe_gather_amx(__global const STORAGE(SRC) * x, __global const int *tile_expert,
               __global const int *source, __global uint *rows, uint k_count, uint top_k)
{
    const ulong tile = get_global_id(0);
    if (tile_expert[tile] < 0)
        return;
    __global const STORAGE(SRC) * from[16];
    for (uint t = 0; t < 16; t++) {
        const int slot = source[tile * 16 + t];
        from[t] = slot >= 0 ? x + (ulong)(slot / (int)top_k) * k_count : 0;
    }
    pack_tile(from, k_count, rows + tile * bf16_tile_words(k_count));
}
