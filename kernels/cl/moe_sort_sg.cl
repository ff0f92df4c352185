/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts slots by expert, in tiles of 16; results as in moe_sort_ref, stable as there.
 *
 * A work-group of ITEMS places the slots of one expert; groups {E}. Each counts all experts, to
 * know where its tiles begin. Then its first sub-group goes through the slots in order, each lane
 * one slot: a scan counts the expert's own slots before each.
 */
#include "own_experts.h"
#include "sub_group_work_group.h"

#ifndef EXPERTS
#define EXPERTS 8
#endif

/* Returns how many tiles the experts before `end` have, in all lanes. */
static inline uint
tiles_before(__local const uint *counts, uint end)
{
    uint tiles = 0;
    for (uint e = get_sub_group_local_id(); e < end; e += SG)
        tiles += (counts[e] + 15) / 16;
    return sub_group_reduce_add(tiles);
}

/* The last expert's work-group also writes where all tiles end. */
static inline void
write_tiles(__global uint *first_tile, __global int *tile_expert, uint expert, uint first,
            uint end, uint max_tiles)
{
    const uint lane = get_sub_group_local_id();
    if (lane == 0)
        first_tile[expert] = first;
    for (uint i = first + lane; i < end; i += SG)
        tile_expert[i] = (int)expert;
    if (expert + 1 < EXPERTS)
        return;
    if (lane == 0)
        first_tile[EXPERTS] = end;
    for (uint i = end + lane; i < max_tiles; i += SG)
        tile_expert[i] = -1;
}

SUB_GROUP_SIZE WORK_GROUP_SIZE __kernel void
moe_sort_sg(__global const int *ids, __global uint *first_tile, __global int *tile_expert,
            __global int *source, __global uint *place, __global uint *next, uint slots,
            uint experts, uint max_tiles)
{
    __local uint counts[EXPERTS];
    const uint expert = (uint)get_group_id(0), lane = get_sub_group_local_id();
    for (uint e = get_local_id(0); e < EXPERTS; e += ITEMS)
        counts[e] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < slots; i += ITEMS) {
        if (!IS_ABSENT(ids[i]))
            atomic_inc(&counts[ids[i]]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_sub_group_id() > 0)
        return;
    const uint tile = tiles_before(counts, expert);
    const uint tile_end = tile + (counts[expert] + 15) / 16;
    write_tiles(first_tile, tile_expert, expert, tile, tile_end, max_tiles);
    for (uint p = tile * 16 + counts[expert] + lane; p < tile_end * 16; p += SG)
        source[p] = -1;
    uint to = tile * 16;
#pragma unroll 1
    for (uint first = 0; first < slots; first += SG) {
        const uint i = first + lane;
        const uint mine = i < slots && ids[min(i, slots - 1)] == (int)expert;
        const uint p = to + sub_group_scan_exclusive_add(mine);
        if (mine) {
            source[p] = (int)i;
            place[i] = p;
        }
        if (PARTIAL && expert == 0 && i < slots && IS_ABSENT(ids[i]))
            place[i] = NOWHERE;
        to += sub_group_reduce_add(mine);
    }
}
