/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the tiles of tokens of one expert; many tokens, on matrix engines.
 *
 *     h[tile][i][t] = act(x_t . gate[e][i]) * (x_t . up[e][i]),  e = tile_expert[tile]
 *
 * x and h are tiles in pairs (pairs.h), h for the down projection. Forms as in gate_up.h.
 * A sub-group computes 8 neighbouring i of TILES tiles of an expert, the first of which it was
 * started for; those started for the others return. Global size {I / 8 rounded up * SG, tiles}.
 */
#include "gate_up.h"
#include "sub_group_matrix.h"

/* Eight rows from `first`, a multiple of 8, on: whole pairs. */
static inline void
store_pairs(const float values[8], uint first, uint token, __global uint *tile)
{
    const uint apart = PAIR_WORD_K(OUT_PLANES) / 2;
#pragma unroll
    for (uint i = 0; i < 8; i++) {
        if (i % (2 * apart) < apart)
            tile[word_of_k(first + i, token, OUT_PLANES, OUT_GROUP, SG)] =
                two_halves(values[i], values[i + apart]);
    }
}

SUB_GROUP_SIZE __kernel void
moe_gemm_gate_up_dpas(GATE_UP_PARAMETERS, __global const uint *x,
                      __global const uint *first_tile, __global const int *tile_expert,
                      __global const int *source, __global uint *h, uint i_count,
                      uint k_count)
{
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint first = sub_group_index() * 8, tile = (uint)get_group_id(1);
    const int expert = tile_expert[tile];
    float8 acc[ROW_BLOCKS][TOKEN_BLOCKS];
    if (expert < 0 || first >= i_count || (tile - first_tile[expert]) % TILES != 0)
        return;
    const uint last_tile = first_tile[expert + 1] - 1;
    const struct row_block rows[ROW_BLOCKS] = {
        row_block_at(&gates, stored_row(&gates, expert, first),
                     stored_row(&gates, expert, i_count - 1)),
        row_block_at(&ups, stored_row(&ups, expert, first),
                     stored_row(&ups, expert, i_count - 1))};
    multiply_tiles(rows, x, tile, last_tile, acc);
#pragma unroll
    for (uint t = 0; t < TOKEN_BLOCKS; t++) {
        const uint to = tile + t / TILE_BLOCKS;
        float gate[8], up[8];
        if (to > last_tile)
            return;
        vstore8(acc[0][t], 0, gate);
        vstore8(acc[1][t], 0, up);
#pragma unroll
        for (uint i = 0; i < 8; i++)
            gate[i] =
                gate_times_up(&g, expert, min(first + i, i_count - 1), gate[i], up[i]);
        store_pairs(gate, first, t % TILE_BLOCKS * SG + get_sub_group_local_id(),
                    h + to * (ulong)i_count * 8);
    }
}
