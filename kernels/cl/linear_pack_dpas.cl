/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs x[t][.] into tiles of steps (pack_steps.h); tokens past the last are zeros. Global size
 * {K / 256 rounded up * 16, tokens of all tiles / 2}, local size 16.
 */
#include "pack_steps.h"

__kernel void
linear_pack_dpas(__global const ushort *x, __global ushort *prepared, uint t_count,
                 uint k_count)
{
    const uint item = (uint)get_local_id(0);
    const uint t = (uint)get_group_id(1) * 2 + item / 8;
    pack_steps(x + min(t, t_count - 1) * (ulong)k_count, t >= t_count,
               (uint)get_group_id(0) * 8 + item % 8, t % 16, k_count,
               prepared + t / 16 * (ulong)tile_halves(k_count));
}
