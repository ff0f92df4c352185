/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of activations into tiles of 16 tokens, in the order of the weights that read them. A lane
 * is a token: it reads its row in order, and the sub-group writes whole rows of the tile.
 *
 *   PAIRS  0: [K padded][16 tokens] in plane order (planes.h), padded with zeros
 *          8 or 16: pairs of halves (pairs.h) for sub-groups of so many tokens; K is whole chunks
 */
#include "pairs.h"
#include "planes.h"
#include "sub_group.h"

#ifndef SRC
#define SRC f32 /* element of x */
#endif
#ifndef TILE
#define TILE f32 /* element of the tiles */
#endif
#ifndef PAIRS
#define PAIRS 0
#endif
#if PAIRS && !IS_HALF(TILE)
#error "pairs are of halves"
#endif

/* Elements of a tile. */
static inline ulong
tile_elements(uint k_count)
{
#if PAIRS
    return (ulong)k_count * 16;
#else
    return ((ulong)k_count + BLOCK - 1) / BLOCK * BLOCK * 16;
#endif
}

static inline float
element_of(__global const STORAGE(SRC) * row, uint k, uint n)
{
    return k < n ? LOAD(SRC, row, k) : 0.0f;
}

/* Block b of the row of lane `token`; n is its length, 0 where there is no such token. */
static inline void
pack_block(__global const STORAGE(SRC) * row, uint n, uint b, uint token, uint k_count,
           __global STORAGE(TILE) * tile)
{
#if PAIRS
#pragma unroll 1
    for (uint step = b * (BLOCK / 16); step < min((b + 1) * (BLOCK / 16), k_count / 16);
         step++) {
#pragma unroll
        for (uint c = 0; c < 8; c++) {
            const uint k = pair_k(step, c, PLANES, GROUP);
            const uint second = k + PAIR_WORD_K(PLANES) / 2;
            ((__global uint *)tile)[pair_word(step, c, token, PAIRS)] =
                two_halves(element_of(row, k, n), element_of(row, second, n));
        }
    }
#else
#pragma unroll 1
    for (uint i = 0; i < 16; i++) {
#pragma unroll
        for (uint j = 0; j < PLANES; j++) {
            const uint k = b * BLOCK + i * PLANES + j;
            STORE(TILE, tile, (b * BLOCK + j * 16 + i) * 16 + token,
                  element_of(row, k, n));
        }
    }
#endif
}
