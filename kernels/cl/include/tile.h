/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of activations for the products of many tokens: 16 tokens in lanes, k block by block in the
 * plane order of a block of weights (planes.h):
 *
 *     [plane_position(k)][lane], f32
 */
#include "planes.h"

/* Writes v, [16 planes][16 lanes] with k in natural order, as block b of a tile. */
static inline void
write_block(const float *v, const uint planes, __global float *tile, uint b)
{
    const uint n = 16 * planes;
    for (uint k = 0; k < n; k++)
        vstore16(vload16(k, v), b * n + plane_position(k, planes), tile);
}

/* Stores the n elements at x, then zeros, as lane `lane` of block v. */
static inline void
put_row(__global const STORAGE(SRC) * x, uint n, uint lane, float *v)
{
    float row[BLOCK];
    uint k = 0;
    for (; k + 16 <= n; k += 16)
        vstore16(LOAD16(SRC, x, k), 0, row + k);
    for (; k < BLOCK; k++)
        row[k] = k < n ? LOAD(SRC, x, k) : 0.0f;
    for (k = 0; k < BLOCK; k++)
        v[k * 16 + lane] = row[k];
}
