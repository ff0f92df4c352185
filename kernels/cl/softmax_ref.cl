/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[o,n,i] = e^(x[o,n,i] - max_n x) / sum_n e^(x[o,n,i] - max_n x)
 *
 * A work-item computes one column (o, i) and reads it three times; y may be x.
 */
#include "types.h"

__kernel void
softmax_ref(__global const STORAGE(SRC) *x, __global STORAGE(DST) *y, ulong columns,
            ulong n, ulong inner)
{
    const ulong id = get_global_id(0), at = id / inner * n * inner + id % inner;
    float most = -INFINITY, sum = 0.0f;
    for (ulong i = 0; i < n; i++)
        most = fmax(most, LOAD(SRC, x, at + i * inner));
    for (ulong i = 0; i < n; i++)
        sum += exp(LOAD(SRC, x, at + i * inner) - most);
    for (ulong i = 0; i < n; i++)
        STORE(DST, y, at + i * inner, exp(LOAD(SRC, x, at + i * inner) - most) / sum);
}
