/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the chosen experts, summed with the routing weights; few tokens.
 *
 *     y[t][n] = (add[t][n] +) sum_s weights[t][s] (h[t][s] . down[e][n] (+ bias[e][n]))
 *
 * e = ids[t][s]. A work-group computes 32 neighbouring n of one token, the slots and K split among
 * its sub-groups (lane_rows.h). Global size {H / 32 rounded up * SG * SPLIT, T}.
 */
#define SRC f32
#include "lane_rows.h"

#ifndef ADD
#define ADD f32 /* type of add */
#endif

LANE_ROWS_GROUP __kernel void
moe_down_dpas(WEIGHT_PARAMETERS(w), __global const float *h, __global const int *ids,
              __global const float *weights, __global const float *bias,
              __global const STORAGE(ADD) * add, __global STORAGE(DST) * y, uint n_count,
              uint k_count, uint top_k)
{
    __local row_shares shares;
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = (uint)get_group_id(0) * UNIT_ROWS, lane = (uint)get_local_id(0);
    const ulong t = get_group_id(1);
    const struct slots slots = {ids + t * top_k, weights + t * top_k, top_k, 0};
    multiply_rows(&w, &slots, first, n_count - 1, h + t * top_k * k_count, &shares);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint n = first + lane;
    if (lane >= UNIT_ROWS || n >= n_count)
        return;
    float total = row_total(&shares, lane);
    for (uint s = 0; bias && s < top_k; s++)
        total += IS_ABSENT(slots.ids[s])
                     ? 0.0f
                     : slots.weights[s] * bias[(ulong)slots.ids[s] * n_count + n];
    STORE(DST, y, t * n_count + n,
          total + (add ? LOAD(ADD, add, t * n_count + n) : 0.0f));
}
