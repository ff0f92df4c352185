/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[r,:] = x[r,:] / sqrt(mean(x[r,:]^2) + epsilon) * gamma
 *
 * A work-group of ITEMS computes one row of n elements, and reads it twice.
 */
#include "group.h"
#include "types.h"

#ifndef HAS_GAMMA
#define HAS_GAMMA 1
#endif

__kernel void
rms_norm_gen(__global const STORAGE(SRC) *x, __global const float *gamma,
             __global STORAGE(DST) *y, ulong rows, int n, float epsilon,
             __global int *prepared)
{
    __local float parts[ITEMS];
    const ulong row = get_group_id(0) * (ulong)n;
    const int me = get_local_id(0);
    float sum = 0.0f;
    for (int i = me; i < n; i += ITEMS) {
        const float v = LOAD(SRC, x, row + i);
        sum += v * v;
    }
    const float scale = 1.0f / sqrt(group_sum(parts, sum) / n + epsilon);
    for (int i = me; i < n; i += ITEMS) {
        const float v = LOAD(SRC, x, row + i) * scale;
        STORE(DST, y, row + i, HAS_GAMMA ? v * gamma[i] : v);
    }
}
