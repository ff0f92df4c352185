/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the chosen experts, summed with the routing weights; few tokens.
 *
 *     y[t][n] = (add[t][n] +) sum_s weights[t][s] (h[t][s] . down[e][n] (+ bias[e][n]))
 *
 * e = ids[t][s]. A sub-group computes ROWS neighbouring n of one token, K across its lanes; sums
 * over the slots are joined across lanes only at the end. Global size
 * {H / ROWS rounded up * SG, T}.
 */
#define SRC f32
#include "sub_group_gemv.h"

#include "own_experts.h"

#ifndef ADD
#define ADD f32 /* type of add */
#endif

SUB_GROUP_SIZE __kernel void
moe_down_sg(WEIGHT_PARAMETERS(w), __global const float *h, __global const int *ids,
            __global const float *weights, __global const float *bias,
            __global const STORAGE(ADD) *add, __global STORAGE(DST) * y, uint n_count,
            uint k_count, uint top_k)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = sub_group_index() * ROWS;
    const uint n = first + get_sub_group_local_id();
    const ulong t = get_group_id(1);
    float all[ROWS] = {0};
    float biases = 0.0f;
    if (first >= n_count)
        return;
#pragma unroll 1
    for (ulong slot = t * top_k; slot < (t + 1) * top_k; slot++) {
        const ulong expert = ids[slot];
        if (IS_ABSENT(ids[slot]))
            continue;
        float sum[ROWS];
        rows_dot(&w, stored_row(&w, expert, first), stored_row(&w, expert, n_count - 1),
                 h + slot * k_count, sum);
#pragma unroll
        for (uint r = 0; r < ROWS; r++)
            all[r] += weights[slot] * sum[r];
        if (bias)
            biases += weights[slot] * bias[expert * n_count + min(n, n_count - 1)];
    }
    const float total = lane_total(all) + biases;
    if (get_sub_group_local_id() < ROWS && n < n_count)
        STORE(DST, y, t * n_count + n, total + (add ? LOAD(ADD, add, t * n_count + n) : 0.0f));
}
