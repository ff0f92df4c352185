/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies token rows into expert order: tiles of 16 tokens in lanes, k in the plane order of the
 * weights that read them (planes.h), padded with zeros.
 *
 *     rows[tile][plane_position(k)][lane] = x[source[tile * 16 + lane] / top_k][k]
 *
 * A work-item moves one block of a tile row by row: it reads rows in order and scatters within the
 * block (8 KiB at most), which stays in cache. Global size {blocks, tiles}, local size 1.
 */
#include "tile.h"

__kernel void
moe_gather_vec(__global const STORAGE(SRC) * x, __global const int *tile_expert,
               __global const int *source, __global float *rows, uint k_count,
               uint top_k)
{
    const uint b = (uint)get_global_id(0), blocks = (uint)get_global_size(0);
    const ulong tile = get_global_id(1);
    if (tile_expert[tile] < 0)
        return;
    const uint left = min(k_count - b * BLOCK, (uint)BLOCK);
    float v[BLOCK * 16];
    for (uint lane = 0; lane < 16; lane++) {
        const int slot = source[tile * 16 + lane];
        put_row(x + (ulong)(max(slot, 0) / (int)top_k) * k_count + b * BLOCK,
                slot >= 0 ? left : 0, lane, v);
    }
    write_block(v, PLANES, rows + tile * blocks * BLOCK * 16, b);
}
