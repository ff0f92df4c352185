/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs rows of activations into tiles: [K padded][16 tokens], k in the plane order of the weights
 * that are multiplied by them (planes.h), padded with zeros. Each lane is a token and reads its row
 * in order; the sub-group writes whole rows of the tile.
 */
#include "planes.h"
#include "sub_group.h"

#ifndef TILE
#define TILE f32 /* element of the tiles */
#endif

/* Packs block b of the row of lane `token`; n is its length, 0 if there is no such token. */
static inline void
pack_block(__global const STORAGE(SRC) * row, uint n, uint b, uint token,
           __global STORAGE(TILE) * tile)
{
    tile += b * BLOCK * 16 + token;
#pragma unroll 1
    for (uint i = 0; i < 16; i++) {
#pragma unroll
        for (uint j = 0; j < PLANES; j++) {
            const uint k = b * BLOCK + i * PLANES + j;
            STORE(TILE, tile, (j * 16 + i) * 16, k < n ? LOAD(SRC, row, k) : 0.0f);
        }
    }
}
