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
linear_ref(WEIGHT_PARAMETERS(w), __global const STORAGE(SRC) * x,
           __global const float *bias, __global const STORAGE(DST) * addend,
           __global STORAGE(DST) * y, uint n_count, uint k_count)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint n = (uint)get_global_id(0);
    const ulong t = get_global_id(1), row = stored_row(&w, 0, n);
    float sum = bias ? bias[n] : 0.0f;
    for (uint k = 0; k < k_count; k++)
        sum += weight_at(&w, row, k) * LOAD(SRC, x, t * k_count + k);
    if (addend)
        sum += LOAD(DST, addend, t * n_count + n);
    STORE(DST, y, t * n_count + n, sum);
}
