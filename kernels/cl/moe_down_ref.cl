/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the chosen experts, summed with the routing weights; few tokens.
 *
 *     y[t][n] = (add[t][n] +) sum_s weights[t][s] (h[t][s] . down[e][n] (+ bias[e][n]))
 *
 * e = ids[t][s]. A work-item computes one element; global size {H, T}.
 */
#include "own_experts.h"
#include "weights.h"

#ifndef ADD
#define ADD f32 /* type of add */
#endif

__kernel void
moe_down_ref(WEIGHT_PARAMETERS(w), __global const float *h, __global const int *ids,
             __global const float *weights, __global const float *bias,
             __global const STORAGE(ADD) *add, __global STORAGE(DST) * y, uint n_count,
             uint k_count, uint top_k)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint n = (uint)get_global_id(0);
    const ulong t = get_global_id(1);
    float sum = add ? LOAD(ADD, add, t * n_count + n) : 0.0f;
    for (ulong slot = t * top_k; slot < (t + 1) * top_k; slot++) {
        if (IS_ABSENT(ids[slot]))
            continue;
        const ulong expert = ids[slot], row = stored_row(&w, expert, n);
        float dot = bias ? bias[expert * n_count + n] : 0.0f;
        for (uint k = 0; k < k_count; k++)
            dot += weight_at(&w, row, k) * h[slot * k_count + k];
        sum += weights[slot] * dot;
    }
    STORE(DST, y, t * n_count + n, sum);
}
