/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds a host library's products of the two rows into which linear_split_vec split each row:
 *
 *     y[t][n] = products[2t][n] + products[2t + 1][n] (+ bias[n])
 *
 * A work-item writes one row; global size {tokens}, local size 1; bias may be NULL.
 */
#include "types.h"

__kernel void
linear_sum_vec(__global const float *products, __global const float *bias,
               __global STORAGE(DST) * y, uint n_count)
{
    const ulong t = get_global_id(0);
    __global const float *high = products + 2 * t * n_count, *low = high + n_count;
    y += t * n_count;
    uint n = 0;
    for (; n + 16 <= n_count; n += 16) {
        const float16 sum = LOAD16(f32, high, n) + LOAD16(f32, low, n);
        STORE16(DST, y, n, bias ? sum + LOAD16(f32, bias, n) : sum);
    }
    for (; n < n_count; n++)
        STORE(DST, y, n, high[n] + low[n] + (bias ? bias[n] : 0.0f));
}
