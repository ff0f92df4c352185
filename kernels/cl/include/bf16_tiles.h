/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations as bf16 in tiles of 16 tokens, pairs of k in a word (amx.h):
 *
 *     [tiles][k / 2][16 tokens], word = x[t][k] | x[t][k + 1] << 16
 *
 * padded with zeros to whole units of 128 k (units.h).
 */
#include "amx.h"
#include "turn.h"
#include "types.h"

static inline ulong
bf16_tile_words(uint k_count)
{
    return (ulong)(k_count + 127) / 128 * 64 * 16;
}

/* Returns 32 elements of a row from k on as bf16; 0 behind its end. */
static inline uint16
thirty_two(__global const STORAGE(SRC) * row, uint k, uint k_count)
{
    float v[32];
    if (k + 32 <= k_count)
        return bf16_words(LOAD16(SRC, row, k), LOAD16(SRC, row, k + 16));
    for (uint i = 0; i < 32; i++)
        v[i] = k + i < k_count ? LOAD(SRC, row, k + i) : 0.0f;
    return bf16_words(vload16(0, v), vload16(1, v));
}

/* Packs a tile from 16 rows; a row NULL: zeros. */
static inline void
pack_tile(__global const STORAGE(SRC) * const rows[16], uint k_count, __global uint *tile)
{
    const uint end = bf16_tile_words(k_count) / 8;
    for (uint k = 0; k < end; k += 32) {
        uint16 v[16];
#pragma unroll
        for (uint t = 0; t < 16; t++)
            v[t] = rows[t] ? thirty_two(rows[t], k, k_count) : 0;
        turn_over(v);
#pragma unroll
        for (uint i = 0; i < 16; i++)
            vstore16(v[i], k / 2 + i, tile);
    }
}
