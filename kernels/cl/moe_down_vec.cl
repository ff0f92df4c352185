/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the chosen experts, summed with the routing weights; few tokens.
 *
 *     y[t][n] = (add[t][n] +) sum_s weights[t][s] (h[t][s] . down[e][n] (+ bias[e][n]))
 *
 * e = ids[t][s]. A work-item computes per_item neighbouring n of one token, RUN of them for one
 * slot after the other: their rows are adjacent, those of another expert far away (runs of 16
 * took 1.09 times as long with Q4_0 and 768 columns). Sums over the slots are joined across lanes
 * only at the end. Global size {H / per_item rounded up, T}, local size 1. h is prepared rows
 * (prepared.h).
 */
#include "gemv_rows.h"
#include "own_experts.h"

#define RUN 64

#ifndef ADD
#define ADD f32 /* type of add */
#endif

__kernel void
moe_down_vec(WEIGHT_PARAMETERS(w), __global const int *h, __global const int *ids,
             __global const float *weights, __global const float *bias,
             __global const STORAGE(ADD) *add, __global STORAGE(DST) * y, uint n_count,
             uint k_count, uint top_k, uint per_item)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const ulong t = get_global_id(1);
    const uint first = (uint)get_global_id(0) * per_item;
    const uint end = min(first + per_item, n_count);
    for (uint n = first; n < end; n += RUN) {
        const uint rows = min(end - n, (uint)RUN);
        float16 sum[RUN] = {0};
        for (ulong slot = t * top_k; slot < (t + 1) * top_k; slot++) {
            const ulong expert = ids[slot];
            if (IS_ABSENT(ids[slot]))
                continue;
            const struct x_row row = x_row_at(h, slot, k_count);
            for (uint r = 0; r < rows; r++) {
                float16 dot = product_with(&w, stored_row(&w, expert, n + r), &row);
                if (bias)
                    dot.s0 += bias[expert * n_count + n + r];
                sum[r] += weights[slot] * dot;
            }
        }
        for (uint r = 0; r < rows; r += ROWS_AT_ONCE) {
            const uint count = min(rows - r, (uint)ROWS_AT_ONCE);
            float16 all = sum_each(sum + r);
            if (add)
                all += LOAD_SOME(ADD, add, t * n_count + n + r, count);
            STORE_SOME(DST, y, t * n_count + n + r, count, all);
        }
    }
}
