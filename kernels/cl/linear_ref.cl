/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]) (+ addend[t][n])
 *
 * A work-item computes one element of y; global size {N, T}. The reference: any device, any
 * weight format.
 */
#include "weights.h"

#ifndef SRC
#define SRC f32 /* element of x */
#endif
#ifndef DST
#define DST f32 /* element of y */
#endif

__kernel void
linear_ref(__global const uchar *data, __global const uchar *scale,
           __global const uchar *zp, __global const STORAGE(SRC) * x,
           __global const float *bias, __global const STORAGE(DST) * addend,
           __global STORAGE(DST) * y, uint n_count, uint k_count)
{
    const uint n = (uint)get_global_id(0);
    const ulong t = get_global_id(1);
    const uint group = weight_group(k_count), groups = k_count / group;
    float sum = bias ? bias[n] : 0.0f;
    for (uint g = 0; g < groups; g++) {
        const float zero = weight_zero_point(zp, n, g, n_count, groups);
        float part = 0;
        for (uint k = g * group; k < (g + 1) * group; k++)
            part +=
                (weight_raw(data, n, k, k_count) - zero) * LOAD(SRC, x, t * k_count + k);
        sum += part * weight_scale(scale, n, g, n_count, groups);
    }
    if (addend)
        sum += LOAD(DST, addend, t * n_count + n);
    STORE(DST, y, t * n_count + n, sum);
}
