/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[r,:] = x[r,:] / sqrt(mean(x[r,:]^2) + epsilon) * gamma
 *
 * A work-group of ITEMS work-items computes one row of n elements, and reads it twice.
 */
#include "sub_group_work_group.h"

#ifndef HAS_GAMMA
#define HAS_GAMMA 1
#endif

SUB_GROUP_SIZE WORK_GROUP_SIZE __kernel void
rms_norm_sg(__global const STORAGE(SRC) * x, __global const float *gamma,
            __global STORAGE(DST) * y, ulong rows, int n, float epsilon,
            __global int *prepared)
{
    __local float parts[SUB_GROUPS];
    const ulong row = get_group_id(0) * (ulong)n;
    float sum = 0.0f;
    for (int i = get_local_id(0); i < n; i += ITEMS) {
        const float v = LOAD(SRC, x, row + i);
        sum += v * v;
    }
    const float scale = 1.0f / sqrt(work_group_sum(sum, parts) / n + epsilon);
    for (int i = get_local_id(0); i < n; i += ITEMS) {
        const float v = LOAD(SRC, x, row + i) * scale;
        STORE(DST, y, row + i, HAS_GAMMA ? v * gamma[i] : v);
    }
}
