/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs rows of halves into tiles of steps (steps.h). A work-group of 16 work-items packs a
 * super-block of two tokens; each work-item packs 32 columns of one token.
 *
 *   FORM_PLANES  elements in a word of the weights that are multiplied by the tiles: 2, 4 or 8
 *   FORM_SUMS    1: the weights also need the sums of the columns
 */
#include "sub_group.h"

#include "steps.h"

#ifndef FORM_PLANES
#define FORM_PLANES 4
#endif
#ifndef FORM_SUMS
#define FORM_SUMS 1
#endif

/* Returns step h (0 or 1) of the 32 columns a, b. */
static inline ushort16
step_columns(ushort16 a, ushort16 b, uint h)
{
#if FORM_PLANES == 2
    return h ? b : a;
#elif FORM_PLANES == 4
    const ushort16 x = h ? b : a;
    return x.s021346578a9bcedf;
#else
    return h ? (ushort16)(a.s15379dbf, b.s15379dbf)
             : (ushort16)(a.s04268cae, b.s04268cae);
#endif
}

/* Packs columns 32 block … of a row and their sums; zeros if there is no token (`is_none`) or the
 * row has ended. `token` counts within the tile. */
static inline void
pack_steps(__global const ushort *row, bool is_none, uint block, uint token, uint k_count,
           __global ushort *tile)
{
    const bool is_zero = is_none || 32 * block >= k_count;
    __global const ushort *from = row + (is_zero ? 0 : 32 * block);
    const ushort16 a = vload16(0, from), b = vload16(1, from);
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (uint h = 0; h < 2; h++) {
        uint pairs[8];
        vstore8(is_zero ? (uint8)0 : as_uint8(step_columns(a, b, h)), 0, pairs);
#pragma unroll
        for (uint c = 0; c < 8; c++) {
            ((__global uint *)tile)[slots_place(block / 8, block % 8 * 2 + h, token, c)] =
                pairs[c];
            sum[h] += halves(pairs[c]).x + halves(pairs[c]).y;
        }
    }
    if (FORM_SUMS) {
        put_sum(tile, SUM_STEP, token, block, sum[0] + sum[1]);
        put_sum(tile, SUM_STEP + 1, token, block, sum[1]);
    }
}
