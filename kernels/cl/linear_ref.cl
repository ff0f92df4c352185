/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]) (+ addend[t][n])
 *
 * Up to three weights, or a gated linear unit (segments.h). A work-item computes one element of a
 * y; global size {rows of all segments, T}. The reference: any device, any weight format.
 */
#include "segments.h"

static float
product(const struct weight *w, uint n, __global const STORAGE(SRC) * x)
{
    const ulong row = stored_row(w, 0, n);
    float sum = 0.0f;
    for (uint k = 0; k < w->k_count; k++)
        sum += weight_at(w, row, k) * LOAD(SRC, x, k);
    return sum;
}

__kernel void
linear_ref(ALL_SEGMENT_PARAMETERS, __global const STORAGE(SRC) * x, OTHER_PARAMETERS,
           uint k_count)
{
    uint n = (uint)get_global_id(0);
    const ulong t = get_global_id(1);
    struct segment s;
    FIND_SEGMENT(s, n, 1);
    const struct segment up = UP_SEGMENT;
    float v = product(&s.w, n, x + t * k_count), u = 0.0f;
    if (PRODUCTS == 2)
        u = product(&up.w, n, x + t * k_count);
    store_results(&s, &up, t, n, 1, v, u);
}
