/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts slots by expert, in tiles of 16; results as in moe_sort_ref, stable as there.
 *
 * A work-group of ITEMS places the slots of one expert; groups {E}. Each counts all experts, to
 * know where its tiles begin. A work-item has a stretch of the slots; a scan over the stretches
 * gives the place of its first slot.
 */
#include "group.h"
#include "own_experts.h"

#ifndef EXPERTS
#define EXPERTS 8
#endif

/* The last expert's work-group also writes where all tiles end. */
static void
write_tiles(__global uint *first_tile, __global int *tile_expert, uint expert, uint first,
            uint end, uint max_tiles)
{
    const uint me = get_local_id(0);
    if (me == 0)
        first_tile[expert] = first;
    for (uint i = first + me; i < end; i += ITEMS)
        tile_expert[i] = (int)expert;
    if (expert + 1 < EXPERTS)
        return;
    if (me == 0)
        first_tile[EXPERTS] = end;
    for (uint i = end + me; i < max_tiles; i += ITEMS)
        tile_expert[i] = -1;
}

__kernel void
moe_sort_gen(__global const int *ids, __global uint *first_tile,
             __global int *tile_expert, __global int *source, __global uint *place,
             __global uint *next, uint slots, uint experts, uint max_tiles)
{
    __local uint counts[EXPERTS], starts[ITEMS];
    const uint expert = (uint)get_group_id(0), me = get_local_id(0);
    const uint stretch = (slots + ITEMS - 1) / ITEMS;
    const uint begin = min(me * stretch, slots), end = min(begin + stretch, slots);
    for (uint e = me; e < EXPERTS; e += ITEMS)
        counts[e] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint mine = 0;
    for (uint i = begin; i < end; i++) {
        if (!IS_ABSENT(ids[i]))
            atomic_inc(&counts[ids[i]]);
        mine += ids[i] == (int)expert;
    }
    starts[me] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);

    uint tile = 0, p = 0;
    for (uint e = 0; e < expert; e++)
        tile += (counts[e] + 15) / 16;
    for (uint i = 0; i < me; i++)
        p += starts[i];
    const uint tile_end = tile + (counts[expert] + 15) / 16;
    write_tiles(first_tile, tile_expert, expert, tile, tile_end, max_tiles);
    for (uint i = tile * 16 + counts[expert] + me; i < tile_end * 16; i += ITEMS)
        source[i] = -1;
    p += tile * 16;
    for (uint i = begin; i < end; i++) {
        if (PARTIAL && expert == 0 && IS_ABSENT(ids[i]))
            place[i] = NOWHERE;
        if (ids[i] != (int)expert)
            continue;
        source[p] = (int)i;
        place[i] = p++;
    }
}
