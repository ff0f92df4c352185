/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies experts into slots as moe_cache_fetch_ref does, 64 bytes at a time from any address; each
 * work-item one piece, global size {pieces of an expert, moves}.
 */
#include "expert_parts.h"

__kernel void
moe_cache_fetch_vec(__global const int2 *moves, __global const ulong2 *parts, PART_ARGS,
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
    uint i = 0;
    for (; i + 64 <= p.bytes; i += 64) {
        const uchar16 a = vload16(0, from + i), b = vload16(1, from + i);
        const uchar16 c = vload16(2, from + i), d = vload16(3, from + i);
        vstore16(a, 0, slots + i);
        vstore16(b, 1, slots + i);
        vstore16(c, 2, slots + i);
        vstore16(d, 3, slots + i);
    }
    for (; i < p.bytes; i++)
        slots[i] = from[i];
}
