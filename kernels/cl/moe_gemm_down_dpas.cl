/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the tiles of tokens of each expert; many tokens, on matrix engines
 * (step_gemm.h).
 *
 *     y[tile * 16 + t][n] = h[tile][t] . down[e][n] (+ bias[e][n]),  e = tile_expert[tile]
 *
 * A sub-group, or the SHARES of a work-group, computes ROW_BLOCKS * SG neighbouring n of up to
 * GROUP_TILES tiles of an expert. One is started for each tile; that of the first of these tiles
 * computes all of them, the others return. Global size
 * {H / (ROW_BLOCKS * SG) rounded up * SHARES * SG, tiles}.
 */
#include "step_gemm.h"

/* Where a sub-group writes, and what it adds. */
struct down {
    __global const float *bias; /* bias of the first row; NULL: none */
    __global float *y;          /* element of the first token and row */
    uint first, n_count;
    float factor;
};

/* Computes the rows of p for its tiles. */
static inline void
make_rows(const struct product *p, const struct down *d, uint k_count)
{
    float8 acc[ROW_BLOCKS][TOKEN_BLOCKS];
    clear(acc);
    multiply_tiles(0, p, ROW_BLOCKS, k_count, acc);
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++) {
        const uint n = r * SG + get_sub_group_local_id();
        const bool is_row = d->first + n < d->n_count;
        const float bias = d->bias && is_row ? d->bias[n] : 0.0f;
        UNROLL_PRODUCTS
        for (uint b = 0; b < TOKEN_BLOCKS; b++) {
            if (is_row && b / 2 < p->x.n)
                store_tokens(acc[r][b] * d->factor + bias,
                             d->y + b * 8 * (ulong)d->n_count + n, d->n_count);
        }
    }
}

GEMM_GROUP __kernel void
moe_gemm_down_dpas(WEIGHT_PARAMETERS(w), __global const ushort *h,
                   __global const uint *first_tile, __global const int *tile_expert,
                   __global const int *source, __global const float *bias,
                   __global float *y, uint n_count, uint k_count)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = row_index() * (ROW_BLOCKS * SG);
    const uint tile = (uint)get_group_id(1), lane = get_sub_group_local_id();
    const int expert = tile_expert[tile];
    struct product p;
    if (expert < 0 || first >= n_count || (tile - first_tile[expert]) % GROUP_TILES != 0)
        return;
    SHARED_HALVES(p)
    p.x = tiles_from(h, tile, first_tile[expert + 1] - 1, k_count);
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++)
        take_row(&p, r, &w, expert, min(first + r * SG + lane, n_count - 1));
    const struct down d = {bias ? bias + (ulong)expert * n_count + first : 0,
                           y + (ulong)p.x.first * 16 * n_count + first, first, n_count,
                           product_factor(&w, expert)};
    make_rows(&p, &d, k_count);
}
