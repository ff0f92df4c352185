/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs tokens into tiles of 16 lanes, k in plane order, for linear_gemm_vec:
 *
 *     prepared tile t / 16, lane t % 16 (tile.h) = x[t][.];   0 for k >= K and t >= T
 *
 * A work-item packs one block of one tile; global size {blocks, tiles}, local size 1.
 */
#include "tile.h"

__kernel void
linear_pack_vec(__global const STORAGE(SRC) * x, __global float *prepared, uint t_count,
                uint k_count)
{
    const uint b = (uint)get_global_id(0), blocks = (uint)get_global_size(0);
    const ulong tile = get_global_id(1);
    float v[BLOCK * 16];
    for (uint lane = 0; lane < 16; lane++) {
        const ulong t = tile * 16 + lane;
        const uint n = t < t_count ? min(k_count - b * BLOCK, (uint)BLOCK) : 0;
        put_row(x + (t < t_count ? t : 0) * k_count + b * BLOCK, n, lane, v);
    }
    write_block(v, PLANES, prepared + tile * blocks * BLOCK * 16, b);
}
