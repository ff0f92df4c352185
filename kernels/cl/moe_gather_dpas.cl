/* SPDX-License-Identifier: Apache-2.0
 *
 * Token rows in expert order, in tiles of pairs (pairs.h): place p has x[source[p] / top_k]. A
 * sub-group packs 128 k of SG places. Global size {K / 128 rounded up * SG, token blocks}.
 */
#include "pack_pairs.h"

SUB_GROUP_SIZE __kernel void
moe_gather_dpas(__global const ushort *x, __global const int *tile_expert,
                __global const int *source, __global uint *rows, uint k_count,
                uint top_k)
{
    const uint unit = sub_group_index();
    const uint place = (uint)get_group_id(1) * SG + get_sub_group_local_id();
    if (unit * UNIT_STEPS * 16 >= k_count || tile_expert[place / 16] < 0)
        return;
    const int slot = source[place];
    pack_pairs(x + (uint)max(slot, 0) / top_k * (ulong)k_count, slot < 0, unit,
               place % 16, k_count, rows + place / 16 * (ulong)k_count * 8);
}
