/* SPDX-License-Identifier: Apache-2.0
 *
 * x[t][.] into tiles of pairs (pairs.h); tokens past the last are zeros. A sub-group packs 128 k
 * of SG tokens. Global size {K / 128 rounded up * SG, token blocks}.
 */
#include "pack_pairs.h"

SUB_GROUP_SIZE __kernel void
linear_pack_dpas(__global const ushort *x, __global uint *prepared, uint t_count,
                 uint k_count)
{
    const uint unit = sub_group_index();
    const uint t = (uint)get_group_id(1) * SG + get_sub_group_local_id();
    if (unit * UNIT_STEPS * 16 >= k_count)
        return;
    pack_pairs(x + min(t, t_count - 1) * (ulong)k_count, t >= t_count, unit, t % 16,
               k_count, prepared + t / 16 * (ulong)k_count * 8);
}
