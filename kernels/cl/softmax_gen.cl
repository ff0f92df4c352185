/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[r,:] = e^(x[r,:] - max x[r,:]) / sum e^(x[r,:] - max x[r,:])          inner == 1
 *
 * A work-group of ITEMS computes one row of n elements and reads it three times; y may be x.
 */
#include "group.h"
#include "types.h"

__kernel void
softmax_gen(__global const STORAGE(SRC) *x, __global STORAGE(DST) *y, ulong columns,
            ulong n, ulong inner)
{
    __local float parts[ITEMS];
    const ulong row = get_group_id(0) * n;
    const uint me = get_local_id(0);
    float most = -INFINITY, sum = 0.0f;
    for (ulong i = me; i < n; i += ITEMS)
        most = fmax(most, LOAD(SRC, x, row + i));
    most = group_max(parts, most);
    for (ulong i = me; i < n; i += ITEMS)
        sum += exp(LOAD(SRC, x, row + i) - most);
    sum = group_sum(parts, sum);
    for (ulong i = me; i < n; i += ITEMS)
        STORE(DST, y, row + i, exp(LOAD(SRC, x, row + i) - most) / sum);
}
