/* SPDX-License-Identifier: Apache-2.0
 *
 *     prepared[t / 16][plane_position(k)][t % 16] = x[t][k]
 *
 * Tokens past the last are zeros. A sub-group packs one block of a tile, each lane one token.
 * Global size {blocks * SG, tiles}.
 */
#include "sub_group_pack.h"

SUB_GROUP_SIZE __kernel void
linear_pack_sg(__global const STORAGE(SRC) * x, __global STORAGE(TILE) * prepared,
               uint t_count, uint k_count)
{
    const uint blocks = (k_count + BLOCK - 1) / BLOCK, b = sub_group_index();
    const uint token = get_sub_group_local_id();
    const ulong tile = get_group_id(1), t = tile * 16 + token;
    if (b >= blocks || token >= 16)
        return;
    pack_block(x + min(t, (ulong)t_count - 1) * k_count, t < t_count ? k_count : 0, b,
               token, prepared + tile * blocks * BLOCK * 16);
}
