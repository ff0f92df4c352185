/* SPDX-License-Identifier: Apache-2.0
 *
 * Token rows in expert order: tiles of 16 tokens in lanes, k in the plane order of the weights
 * that read them (planes.h), padded with zeros.
 *
 *     tiles[tile][plane_position(k)][lane] = x[source[tile * 16 + lane] / top_k][k]
 *
 * A work-item moves one block of a tile row by row: it reads streams and scatters within the block
 * (8 KiB at most), which stays in cache. Global size {blocks, tiles}, local size 1.
 */
#include "planes.h"

#ifndef SRC
#define SRC f32 /* element of x */
#endif

__kernel void
moe_gather_vec(__global const STORAGE(SRC) * x, __global const int *tile_expert,
               __global const int *source, __global float *tiles, uint k_count,
               uint top_k)
{
    const uint b = (uint)get_global_id(0), blocks = (uint)get_global_size(0);
    const ulong tile = get_global_id(1);
    if (tile_expert[tile] < 0)
        return;
    __global float *out = tiles + (tile * blocks + b) * BLOCK * 16;
    const uint left = min(k_count - b * BLOCK, (uint)BLOCK);
    for (uint lane = 0; lane < 16; lane++) {
        const int slot = source[tile * 16 + lane];
        const uint n = slot >= 0 ? left : 0;
        __global const STORAGE(SRC) *row =
            x + (ulong)(max(slot, 0) / (int)top_k) * k_count + b * BLOCK;
        for (uint i = 0; i < BLOCK; i++)
            out[plane_position(i, PLANES) * 16 + lane] = i < n ? LOAD(SRC, row, i) : 0.0f;
    }
}
