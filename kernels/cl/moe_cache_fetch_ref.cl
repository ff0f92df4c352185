/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies experts into the slots that moe_cache_lookup has chosen: every part of expert moves[j].x
 * to slot moves[j].y. A work-item copies one piece, byte by byte; global size {pieces of an expert,
 * moves}.
 */
#include "expert_parts.h"

__kernel void
moe_cache_fetch_ref(__global const int2 *moves, __global const ulong2 *parts, PART_ARGS,
                    __global uchar *slots)
{
    const int2 move = moves[get_global_id(1)];
    if (move.x < 0)
        return;
    const struct piece p = find_piece(parts, (uint)get_global_id(0), move);
    if (p.part == PARTS)
        return;
    __global const uchar *from = PART_FROM(p.part) + p.from;
    slots += p.to;
    for (uint i = 0; i < p.bytes; i++)
        slots[i] = from[i];
}
