/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens in tiles of 16 lanes, k in plane order, for linear_gemm_vec:
 *
 *     tiles[t / 16][plane_position(k)][t % 16] = x[t][k];   0 for k >= K and t >= T
 *
 * A work-item packs one block of one tile; global size {blocks, tiles}, local size 1.
 */
#include "planes.h"

#ifndef SRC
#define SRC f32 /* element of x */
#endif

__kernel void
linear_pack_vec(__global const STORAGE(SRC) * x, __global float *tiles, uint t_count,
                uint k_count)
{
    const uint b = (uint)get_global_id(0), blocks = (uint)get_global_size(0);
    const ulong tile = get_global_id(1);
    __global float *out = tiles + (tile * blocks + b) * BLOCK * 16;
    for (uint lane = 0; lane < 16; lane++) {
        const ulong t = tile * 16 + lane;
        for (uint i = 0; i < BLOCK; i++) {
            const uint k = b * BLOCK + i;
            const bool in = t < t_count && k < k_count;
            out[plane_position(i, PLANES) * 16 + lane] =
                in ? LOAD(SRC, x, t * k_count + k) : 0.0f;
        }
    }
}
