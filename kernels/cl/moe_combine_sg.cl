/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts rows back into token order, summed over the slots in f32.
 *
 *     out[t][n] = (add[t][n] +) sum_s weights[t][s] y[place[t][s]][n]
 *
 * A sub-group computes SPAN neighbouring n of one token: places and weights are read once for them.
 * Global size {H / SPAN rounded up * SG, T}.
 */
#include "own_experts.h"
#include "sub_group.h"

#ifndef ADD
#define ADD f32 /* type of add */
#endif
#define EACH 4 /* n of a lane */
#define SPAN (EACH * SG)

SUB_GROUP_SIZE __kernel void
moe_combine_sg(__global const float *y, __global const uint *place,
               __global const float *weights, __global const STORAGE(ADD) *add,
               __global STORAGE(DST) * out, uint n_count, uint top_k)
{
    const uint first = sub_group_index() * SPAN + get_sub_group_local_id();
    const ulong t = get_group_id(1);
    float sum[EACH];
#pragma unroll
    for (uint i = 0; i < EACH; i++)
        sum[i] = add && first + i * SG < n_count
                     ? LOAD(ADD, add, t * n_count + first + i * SG)
                     : 0.0f;
#pragma unroll 1
    for (ulong slot = t * top_k; slot < (t + 1) * top_k; slot++) {
        if (PARTIAL && place[slot] == NOWHERE)
            continue;
        __global const float *from = y + (ulong)place[slot] * n_count;
        const float weight = weights[slot];
#pragma unroll
        for (uint i = 0; i < EACH; i++)
            sum[i] += weight * (first + i * SG < n_count ? from[first + i * SG] : 0.0f);
    }
#pragma unroll
    for (uint i = 0; i < EACH; i++) {
        if (first + i * SG < n_count)
            STORE(DST, out, t * n_count + first + i * SG, sum[i]);
    }
}
