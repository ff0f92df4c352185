/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the chosen experts, summed with the routing weights; few tokens.
 *
 *     y[t][n] = (add[t][n] +) sum_s weights[t][s] (h[t][s] . down[e][n] (+ bias[e][n]))
 *
 * e = ids[t][s]. A work-item computes one element; global size {H, T}.
 */
#include "weights.h"

#ifndef DST
#define DST f32 /* element of y */
#endif
#ifndef ADD
#define ADD f32 /* element of add */
#endif

__kernel void
moe_down_ref(__global const uchar *data, __global const uchar *scale,
             __global const uchar *zp, __global const float *h, __global const int *ids,
             __global const float *weights, __global const float *bias,
             __global const STORAGE(ADD) *add, __global STORAGE(DST) * y, uint k_count,
             uint top_k)
{
    const uint n = (uint)get_global_id(0), n_count = (uint)get_global_size(0);
    const ulong t = get_global_id(1);
    const uint group = weight_group(k_count), groups = k_count / group;
    float sum = add ? LOAD(ADD, add, t * n_count + n) : 0.0f;
    for (ulong slot = t * top_k; slot < (t + 1) * top_k; slot++) {
        const ulong row = (ulong)ids[slot] * n_count + n;
        float dot = bias ? bias[row] : 0.0f;
        for (uint g = 0; g < groups; g++) {
            const float zero = weight_zero_point(zp, row, g, n_count, groups);
            float part = 0;
            for (uint k = g * group; k < (g + 1) * group; k++)
                part +=
                    (weight_raw(data, row, k, k_count) - zero) * h[slot * k_count + k];
            dot += part * weight_scale(scale, row, g, n_count, groups);
        }
        sum += weights[slot] * dot;
    }
    STORE(DST, y, t * n_count + n, sum);
}
