/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies experts into slots as moe_cache_fetch_ref does; a work-group of ITEMS copies a piece, each
 * work-item 16 aligned bytes at a time; groups {pieces of an expert, moves}. Groups without a move
 * return at once.
 */
#include "expert_parts.h"

#ifndef ITEMS
#define ITEMS 64 /* the launch's local size */
#endif

__kernel void
moe_cache_fetch_gen(__global const int2 *moves, __global const ulong2 *parts, PART_ARGS,
                    __global uchar *slots)
{
    const int2 move = moves[get_group_id(1)];
    if (move.x < 0)
        return;
    const struct piece p = find_piece(parts, (uint)get_group_id(0), move);
    if (p.part == PARTS)
        return;
    __global const uint4 *from = (__global const uint4 *)(PART_FROM(p.part) + p.from);
    __global uint4 *to = (__global uint4 *)(slots + p.to);
    for (uint i = get_local_id(0); i < p.bytes / 16; i += ITEMS)
        to[i] = from[i];
}
