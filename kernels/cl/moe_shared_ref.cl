/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing for the shared expert: every token goes to expert 0.
 *
 *     ids[t] = 0,   weights[t] = GATED ? sigmoid(sum_k x[t][k] w[0][k]) : 1
 *
 * A work-item serves one token; global size {T}.
 */
#include "weights.h"

#ifndef SRC
#define SRC f32 /* element of x */
#endif
#ifndef GATED
#define GATED 1
#endif

__kernel void
moe_shared_ref(__global const uchar *data, __global const uchar *scale,
               __global const uchar *zp, __global const STORAGE(SRC) * x,
               __global float *weights, __global int *ids, uint k_count)
{
    const ulong t = get_global_id(0);
    float weight = 1;
#if GATED
    const uint group = weight_group(k_count), groups = k_count / group;
    float sum = 0;
    for (uint g = 0; g < groups; g++) {
        const float zero = weight_zero_point(zp, 0, g, 1, groups);
        float part = 0;
        for (uint k = g * group; k < (g + 1) * group; k++)
            part +=
                (weight_raw(data, 0, k, k_count) - zero) * LOAD(SRC, x, t * k_count + k);
        sum += part * weight_scale(scale, 0, g, 1, groups);
    }
    weight = 1.0f / (1.0f + exp(-sum));
#endif
    weights[t] = weight;
    ids[t] = 0;
}
