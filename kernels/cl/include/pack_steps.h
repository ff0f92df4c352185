/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs rows of halves into tiles of steps (steps.h). A work-group of 16 packs a super-block of two
 * tokens, a work-item 32 columns of one token.
 */
#include "sub_group.h"

#include "steps.h"

/* Packs columns 32 block … of a row and their sums: zeros where there is no token (`is_none`) or
 * the row has ended. `token` counts within the tile. */
static inline void
pack_steps(__global const ushort *row, bool is_none, uint block, uint token, uint k_count,
           __global ushort *tile)
{
    const bool is_zero = is_none || 32 * block >= k_count;
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (uint h = 0; h < 2; h++) {
        const ushort16 x = vload16(0, row + (is_zero ? 0 : 32 * block + 16 * h));
        uint pairs[8];
        vstore8(is_zero ? (uint8)0 : as_uint8(x.s021346578a9bcedf), 0, pairs);
#pragma unroll
        for (uint c = 0; c < 8; c++) {
            ((__global uint *)tile)[slots_place(block / 8, block % 8 * 2 + h, token, c)] =
                pairs[c];
            sum[h] += halves(pairs[c]).x + halves(pairs[c]).y;
        }
    }
    put_sum(tile, SUM_STEP, token, block, sum[0] + sum[1]);
    put_sum(tile, SUM_STEP + 1, token, block, sum[1]);
}
