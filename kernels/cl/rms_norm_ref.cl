/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[r,:] = x[r,:] / sqrt(mean(x[r,:]^2) + epsilon) * gamma
 *
 * A work-item computes one row of n elements and reads it twice.
 */
#include "types.h"

#ifndef HAS_GAMMA
#define HAS_GAMMA 1
#endif

__kernel void
rms_norm_ref(__global const STORAGE(SRC) *x, __global const float *gamma,
             __global STORAGE(DST) *y, ulong rows, int n, float epsilon,
             __global int *prepared)
{
    const ulong row = get_global_id(0) * n;
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        const float v = LOAD(SRC, x, row + i);
        sum += v * v;
    }
    const float scale = 1.0f / sqrt(sum / n + epsilon);
    for (int i = 0; i < n; i++) {
        const float v = LOAD(SRC, x, row + i) * scale;
        STORE(DST, y, row + i, HAS_GAMMA ? v * gamma[i] : v);
    }
}
