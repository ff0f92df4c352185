/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the tiles of one expert; many tokens.
 *
 *     h[tile][plane_position(i)][lane] = act(x . gate[e][i]) * (x . up[e][i])
 *
 * x and h are tiles (tile.h); h is in the order of the down projection (OUT_PLANES), zero for i >=
 * I. Options: gate_up.h. A work-item computes per_item (a multiple of OUT_BLOCK) neighbouring i for
 * all tiles of one expert, two at a time: the tiles stay in cache while all rows are multiplied by
 * them. Global size {I padded / per_item rounded up, E}, local size 1.
 */
#define REAL float16
#include "gate_up.h"
#include "gemm.h"

#define OUT_BLOCK (16 * OUT_PLANES)

/* What is equal for all tiles of a work-item. */
struct problem {
    struct weight gate, up;
    struct gate_up of;
    ulong expert;
    uint i_count;
    ulong tile_floats;
};

__attribute__((always_inline)) static inline void
gate_up(const struct problem *p, uint first, __global const float *x, const uint tiles,
        float (*h)[OUT_BLOCK * 16])
{
    float16 gate[ROWS][2], up[ROWS][2];
    const uint last = p->i_count - 1;
    gemm_tiles(&p->gate, stored_row(&p->gate, p->expert, first),
               stored_row(&p->gate, p->expert, last), x, p->tile_floats, tiles, gate);
    gemm_tiles(&p->up, stored_row(&p->up, p->expert, first),
               stored_row(&p->up, p->expert, last), x, p->tile_floats, tiles, up);
    for (uint r = 0; r < ROWS; r++) {
        const uint i = first + r;
        for (uint t = 0; t < tiles; t++) {
            float16 value = 0;
            if (i < p->i_count)
                value = gate_times_up(&p->of, p->expert, i, gate[r][t], up[r][t]);
            vstore16(value, i % OUT_BLOCK, h[t]);
        }
    }
}

/* Computes block b of h for one or two tiles. */
static void
out_block(const struct problem *p, uint b, uint blocks, __global const float *x,
          uint tiles, __global float *h)
{
    float v[2][OUT_BLOCK * 16];
    for (uint first = b * OUT_BLOCK; first < (b + 1) * OUT_BLOCK; first += ROWS) {
        if (tiles == 2)
            gate_up(p, first, x, 2, v);
        else
            gate_up(p, first, x, 1, v);
    }
    for (uint t = 0; t < tiles; t++)
        write_block(v[t], OUT_PLANES, h + (ulong)t * blocks * OUT_BLOCK * 16, b);
}

__kernel void
moe_gemm_gate_up_vec(GATE_UP_PARAMETERS, __global const float *x,
                     __global const uint *first_tile, __global const int *tile_expert,
                     __global const int *source, __global float *h, uint i_count,
                     uint k_count, uint per_item)
{
    const ulong expert = get_global_id(1);
    const struct problem p = {WEIGHT(gate, k_count, 0),
                              WEIGHT(up, k_count, 1),
                              GATE_UP,
                              expert,
                              i_count,
                              (ulong)(k_count + BLOCK - 1) / BLOCK * BLOCK * 16};
    const uint out_blocks = (i_count + OUT_BLOCK - 1) / OUT_BLOCK;
    const ulong h_floats = (ulong)out_blocks * OUT_BLOCK * 16;
    const uint begin = (uint)get_global_id(0) * per_item / OUT_BLOCK;
    const uint block_end = min(begin + per_item / OUT_BLOCK, out_blocks);
    const uint end = first_tile[expert + 1];
    for (uint tile = first_tile[expert]; tile < end; tile += 2) {
        for (uint b = begin; b < block_end; b++)
            out_block(&p, b, out_blocks, x + tile * p.tile_floats, tile + 1 < end ? 2 : 1,
                      h + tile * h_floats);
    }
}
