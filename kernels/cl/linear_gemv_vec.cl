/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]),   few tokens
 *
 * A work-item computes per_item rows of W for all tokens, so that it streams one stretch of
 * memory and meets every row once; global size {N / per_item, rounded up}, local size 1. x was
 * prepared by linear_prepare_vec.
 */
#include "gemv.h"

#ifndef DST
#define DST f32 /* element of y */
#endif

__kernel void
linear_gemv_vec(__global const uchar *data, __global const uchar *scale,
                __global const uchar *zp, __global const float *planes,
                __global const float *sums, __global const float *bias,
                __global STORAGE(DST) * y, uint n_count, uint k_count, uint t_count,
                uint per_item)
{
    const uint padded = (k_count + BLOCK - 1) / BLOCK * BLOCK;
    const uint groups = k_count / weight_group(k_count);
    const uint first = (uint)get_global_id(0) * per_item;
    const uint end = min(first + per_item, n_count);
    for (uint n = first; n < end; n++) {
        const float b = bias ? bias[n] : 0.0f;
        for (uint t = 0; t < t_count; t++) {
            const float16 sum =
                row_dot(data, scale, zp, n, k_count, planes + (ulong)t * padded,
                        sums + (ulong)t * groups);
            STORE(DST, y, (ulong)t * n_count + n, sum16(sum) + b);
        }
    }
}
