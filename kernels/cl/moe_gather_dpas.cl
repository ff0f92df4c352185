/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies token rows into expert order, in tiles of steps (pack_steps.h): place p has
 * x[source[p] / top_k]. Global size {K / 256 rounded up * 16, places / 2}, local size 16.
 */
#include "pack_steps.h"

__kernel void
moe_gather_dpas(__global const ushort *x, __global const int *tile_expert,
                __global const int *source, __global ushort *rows, uint k_count,
                uint top_k)
{
    const uint item = (uint)get_local_id(0);
    const uint place = (uint)get_group_id(1) * 2 + item / 8;
    if (tile_expert[place / 16] < 0)
        return;
    const int slot = source[place];
    pack_steps(x + (uint)max(slot, 0) / top_k * (ulong)k_count, slot < 0,
               (uint)get_group_id(0) * 8 + item % 8, place % 16, k_count,
               rows + place / 16 * (ulong)tile_halves(k_count));
}
