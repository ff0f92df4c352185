/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts slots by expert, in tiles of 16; every expert begins a tile of its own. Stable: the slots
 * of an expert keep their order, so that results do not depend on timing.
 *
 *     first_tile[e]   where the tiles of expert e begin; first_tile[E] is how many there are
 *     tile_expert[i]  the expert of tile i, -1 from first_tile[E] on
 *     source[p]       the slot at place p = tile * 16 + lane, -1: none
 *     place[slot]     its inverse; NOWHERE: the expert is absent (IS_ABSENT, own_experts.h)
 *
 * One work-item does it all: a counting sort, two passes over the ids. `next` is scratch [E].
 */
#include "own_experts.h"

__kernel void
moe_sort_ref(__global const int *ids, __global uint *first_tile,
             __global int *tile_expert, __global int *source, __global uint *place,
             __global uint *next, uint slots, uint experts, uint max_tiles)
{
    for (uint e = 0; e < experts; e++)
        next[e] = 0;
    for (uint i = 0; i < slots; i++) {
        if (!IS_ABSENT(ids[i]))
            next[ids[i]]++;
    }
    uint tile = 0;
    for (uint e = 0; e < experts; e++) {
        const uint n = (next[e] + 15) / 16;
        first_tile[e] = tile;
        next[e] = tile * 16;
        for (uint i = 0; i < n; i++)
            tile_expert[tile++] = (int)e;
    }
    first_tile[experts] = tile;
    for (uint i = 0; i < tile * 16; i++)
        source[i] = -1;
    for (; tile < max_tiles; tile++)
        tile_expert[tile] = -1;
    for (uint i = 0; i < slots; i++) {
        if (IS_ABSENT(ids[i])) {
            place[i] = NOWHERE;
            continue;
        }
        const uint p = next[ids[i]]++;
        source[p] = (int)i;
        place[i] = p;
    }
}
