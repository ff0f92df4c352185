/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[r,:] = x[r,:] / sqrt(mean(x[r,:]^2) + epsilon) * gamma
 *
 * A work-group of ITEMS work-items makes one row of n elements: partial sums of squares in
 * registers, joined in local memory. The row is read twice.
 */
#include "types.h"

#ifndef SRC
#define SRC f32 /* of x */
#endif
#ifndef DST
#define DST f32 /* of y */
#endif
#ifndef HAS_GAMMA
#define HAS_GAMMA 1
#endif
#ifndef ITEMS
#define ITEMS 64 /* a power of two; the launch's local size */
#endif

__kernel void
rms_norm_gen(__global const STORAGE(SRC) *x, __global const float *gamma,
             __global STORAGE(DST) *y, ulong rows, int n, float epsilon,
             __global int *prepared)
{
    __local float sums[ITEMS];
    const ulong row = get_group_id(0) * (ulong)n;
    const int me = get_local_id(0);
    float sum = 0.0f;
    for (int i = me; i < n; i += ITEMS) {
        const float v = LOAD(SRC, x, row + i);
        sum += v * v;
    }
    sums[me] = sum;
    for (int half_items = ITEMS / 2; half_items > 0; half_items /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < half_items)
            sums[me] += sums[me + half_items];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float scale = 1.0f / sqrt(sums[0] / n + epsilon);
    for (int i = me; i < n; i += ITEMS) {
        const float v = LOAD(SRC, x, row + i) * scale;
        STORE(DST, y, row + i, HAS_GAMMA ? v * gamma[i] : v);
    }
}
