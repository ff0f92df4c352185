/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the tiles of one expert; many tokens.
 *
 *     h[p][i] = act(x[p] . gate[e][i]) * (x[p] . up[e][i])
 *
 * x and h are tiles of bf16 (bf16_tiles.h), h zero for i >= I. Options: gate_up.h. A work-item
 * computes a unit of 128 i of h for all tiles of one expert. Global size {units of I, E}, local
 * size 1.
 */
#define REAL    float16
#define SHORTS  1
#define X_PAIRS 1
#include "gate_up.h"

#include "bf16_gemm.h"

#if GROUP || BLOCKS
/* Of the rows that are multiplied at once, half are gate's, half up's. */
#define HALF (VECTORS / 2)

/* Computes columns i … of h for `tiles` tiles of x; a tile of h has h_words. */
static inline void
gate_up(const struct weight *gate, const struct weight *up, const struct gate_up *g,
        ulong expert, uint i, __global const uint *x, uint tiles, uint i_count,
        __global uint *h, ulong h_words)
{
    tile_sums c[VECTORS][MOST_TILES];
    struct short_rows rows[VECTORS];
    for (uint v = 0; v < VECTORS; v++) {
        const struct weight *w = v < HALF ? gate : up;
        rows[v] = (struct short_rows){*w, stored_row(w, expert, i + v % HALF * 16),
                                      stored_row(w, expert, i_count - 1), 16 * HALF};
    }
    bf16_gemm(rows, x, tiles, c);
    for (uint n = 0; n < tiles; n++) {
        for (uint r = 0; r < 16 * HALF; r += 2) {
            float16 v[2] = {0, 0};
            for (uint j = 0; j < 2 && i + r + j < i_count; j++)
                v[j] = gate_times_up(g, expert, i + r + j,
                                     vload16((r + j) % 16, c[r / 16][n][0]),
                                     vload16((r + j) % 16, c[HALF + r / 16][n][0]));
            vstore16(bf16_pairs(v[0], v[1]), (i + r) / 2, h + n * h_words);
        }
    }
}
#endif

__kernel void
moe_gemm_gate_up_amx(GATE_UP_PARAMETERS, __global const uint *x,
                     __global const uint *first_tile, __global const int *tile_expert,
                     __global const int *source, __global uint *h, uint i_count,
                     uint k_count)
{
#if GROUP || BLOCKS
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint begin = (uint)get_global_id(0) * UNIT_COLUMNS;
    const ulong expert = get_global_id(1);
    const ulong x_words = bf16_tile_words(k_count), h_words = bf16_tile_words(i_count);
    const uint end = first_tile[expert + 1];
    for (uint tile = first_tile[expert]; tile < end; tile += MOST_TILES) {
        const uint tiles = min(end - tile, (uint)MOST_TILES);
        for (uint i = begin; i < begin + UNIT_COLUMNS; i += 16 * HALF)
            gate_up(&gates, &ups, &g, expert, i, x + tile * x_words, tiles, i_count,
                    h + tile * h_words, h_words);
    }
#endif
}
