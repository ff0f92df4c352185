/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the tiles of tokens of each expert; many tokens, on matrix engines
 * (step_gemm.h).
 *
 *     h[tile][t][i] = act(x_t . gate[e][i]) * (x_t . up[e][i]),  e = tile_expert[tile]
 *
 * x and h are tiles of steps (steps.h), h for the down projection. Options: gate_up.h. A work-group
 * computes GROUP_ROWS neighbouring i of up to GROUP_TILES tiles of an expert, and their sums of 32.
 * Its SPLIT sub-groups divide the i; or its SHARES sub-groups divide the tiles, and each
 * lane computes one i after the other. One work-group is started for each tile; that of the first
 * of these tiles computes all of them, the others return. Global size
 * {I / GROUP_ROWS rounded up * GROUP_ITEMS, tiles}.
 *
 *   OUT_PLANES  numbers in a word of the down projection's weights: 2, 4, or 8
 *   OUT_SUMS    columns in each sum that it reads: 32, or 0: it reads none
 */
#define ROW_BLOCKS  2 /* gate and up */
#define SHORT_SPANS 1
#include "step_gemm.h"

#ifdef FORMAT0
#define OWN_PLANES 4
#define OWN_SUMS 32
#else
#define OWN_PLANES STEP_PLANES
#define OWN_SUMS 0
#endif
#ifndef OUT_PLANES
#define OUT_PLANES OWN_PLANES /* the same as gate and up */
#endif
#ifndef OUT_SUMS
#define OUT_SUMS OWN_SUMS
#endif

#include "gate_up.h"

#ifndef SPLIT
#define SPLIT 4
#endif
#if SHARES > 1
#if FORMATS > 1
#error "the sub-groups make halves of gate or of up, by one code"
#endif
#define GROUP_ROWS  32
#define GROUP_ITEMS (SHARES * SG)
#define ROUNDS      (GROUP_ROWS / SG) /* rounds in which the work-group computes its i */
#else
#define GROUP_ROWS  (SPLIT * SG)
#define GROUP_ITEMS GROUP_ROWS
#define ROUNDS      1
#endif
#define BLOCKS_GROUP                                                                     \
    __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) SUB_GROUP_SIZE

/* Stores column i of h for eight tokens from `token` of a tile on. */
static inline void
store_column(const float values[8], uint i, uint token, __global ushort *tile)
{
#pragma unroll
    for (uint t = 0; t < 8; t++)
        tile[column_place(i, token + t, OUT_PLANES)] =
            (ushort)two_halves(values[t], 0.0f);
}

#if OUT_SUMS
/* Writes the sums of the columns that the work-group has written; the last work-group writes all
 * sums up to the end of the super-block. */
static inline void
put_sums(uint tiles, uint i_count, __global ushort *h)
{
    const uint group = (uint)get_group_id(0), first = group * (GROUP_ROWS / 32);
    const uint end = (group + 1) * GROUP_ROWS >= i_count
                         ? supers_of(i_count) * (SUPER_K / 32)
                         : first + GROUP_ROWS / 32;
    const uint tokens = tiles * 16;
    for (uint i = get_local_id(0); i < (end - first) * tokens; i += GROUP_ITEMS) {
        const uint block = first + i / tokens, token = i % 16;
        __global ushort *tile = h + i % tokens / 16 * tile_halves(i_count);
        float sum = 0.0f, last = 0.0f; /* sums of all 32 columns, of the last 16 */
        for (uint c = 0; c < 16 && 32 * block < i_count; c++) {
            const float2 v = halves(
                ((__global const uint *)
                     tile)[slots_place(block / 8, block % 8 * 2 + c / 8, token, c % 8)]);
            sum += v.x + v.y;
            last += c < 8 ? 0.0f : v.x + v.y;
        }
        put_sum(tile, SUM_STEP, token, block, sum);
        put_sum(tile, SUM_STEP + 1, token, block, last);
    }
}
#endif

/* Where a sub-group writes, and what it multiplies products by. */
struct columns {
    const struct gate_up *g;
    uint expert, i; /* this lane's column */
    __global ushort *h; /* the sub-group's first tile */
    float gate_factor, up_factor;
};

/* Adds the products of gate and of up with all columns of x to acc. */
static inline void
multiply_both(const struct product *p, uint k_count,
              float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
#if !BLOCKS || FORMATS == 1
    multiply_tiles(0, p, 2, k_count, acc);
#else
    struct product second = *p;
    move_row(&second, 1, 0);
    multiply_tiles(0, p, 1, k_count, acc);
    multiply_tiles(1, &second, 1, k_count, acc + 1);
#endif
}

/* Computes the columns of p for its tiles. */
static inline void
make_columns(const struct product *p, const struct columns *c, uint k_count)
{
    const uint i_count = c->g->i_count;
    float8 acc[ROW_BLOCKS][TOKEN_BLOCKS];
    clear(acc);
    multiply_both(p, k_count, acc);
    UNROLL_PRODUCTS
    for (uint b = 0; b < TOKEN_BLOCKS; b++) {
        float gate[8], up[8];
        vstore8(acc[0][b] * c->gate_factor, 0, gate);
        vstore8(acc[1][b] * c->up_factor, 0, up);
#pragma unroll
        for (uint t = 0; t < 8; t++)
            gate[t] =
                gate_times_up(c->g, c->expert, min(c->i, i_count - 1), gate[t], up[t]);
        if (c->i < i_count && b / 2 < p->x.n)
            store_column(gate, c->i, b % 2 * 8, c->h + b / 2 * tile_halves(i_count));
    }
}

BLOCKS_GROUP __kernel void
moe_gemm_gate_up_dpas(GATE_UP_PARAMETERS, __global const ushort *x,
                      __global const uint *first_tile, __global const int *tile_expert,
                      __global const int *source, __global ushort *h, uint i_count,
                      uint k_count)
{
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint tile = (uint)get_group_id(1);
    const int expert = tile_expert[tile];
    struct product p;
    if (expert < 0 || (tile - first_tile[expert]) % GROUP_TILES != 0)
        return;
    SHARED_HALVES(p)
    const uint last = first_tile[expert + 1] - 1;
    p.x = tiles_from(x, tile, last, k_count);
#pragma unroll 1
    for (uint round = 0; round < ROUNDS; round++) {
        const uint block =
            SHARES > 1 ? round : sub_group_broadcast(get_sub_group_id(), 0);
        const uint i = (uint)get_group_id(0) * GROUP_ROWS + block * SG +
                       get_sub_group_local_id();
        take_row(&p, 0, &gates, expert, min(i, i_count - 1));
        take_row(&p, 1, &ups, expert, min(i, i_count - 1));
        const struct columns c = {&g,
                                  expert,
                                  i,
                                  h + p.x.first * (ulong)tile_halves(i_count),
                                  product_factor(&gates, expert),
                                  product_factor(&ups, expert)};
        make_columns(&p, &c, k_count);
    }
#if OUT_SUMS
    barrier(CLK_GLOBAL_MEM_FENCE);
    put_sums(min(last + 1 - tile, (uint)GROUP_TILES), i_count,
             h + tile * (ulong)tile_halves(i_count));
#endif
}
