/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs rows of activations into tiles of bf16 (bf16_tiles.h), for linear_gemm_amx.
 *
 * A work-item packs a tile of 16 tokens, those behind the last as zeros. Global size {tiles}, local
 * size 1.
 */
#include "bf16_tiles.h"

__kernel void
linear_pack_amx(__global const STORAGE(SRC) * x, __global uint *prepared, uint t_count,
                uint k_count)
{
    const ulong tile = get_global_id(0);
    __global const STORAGE(SRC) * rows[16];
    for (uint t = 0; t < 16; t++)
        rows[t] = tile * 16 + t < t_count ? x + (tile * 16 + t) * k_count : 0;
    pack_tile(rows, k_count, prepared + tile * bf16_tile_words(k_count));
}
