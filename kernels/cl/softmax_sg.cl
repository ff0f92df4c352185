/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[r,:] = e^(x[r,:] - max x[r,:]) / sum e^(x[r,:] - max x[r,:])
 *
 * Softmax over the last axis: a work-group of ITEMS work-items computes one row and reads it three
 * times; y may be x. `inner` is 1.
 */
#include "sub_group_work_group.h"

SUB_GROUP_SIZE WORK_GROUP_SIZE __kernel void
softmax_sg(__global const STORAGE(SRC) * x, __global STORAGE(DST) * y, ulong columns,
           ulong n, ulong inner)
{
    __local float parts[SUB_GROUPS];
    const ulong row = get_group_id(0) * n;
    float most = -INFINITY, sum = 0.0f;
    for (ulong i = get_local_id(0); i < n; i += ITEMS)
        most = fmax(most, LOAD(SRC, x, row + i));
    most = work_group_max(most, parts);
    for (ulong i = get_local_id(0); i < n; i += ITEMS)
        sum += exp(LOAD(SRC, x, row + i) - most);
    sum = work_group_sum(sum, parts);
    for (ulong i = get_local_id(0); i < n; i += ITEMS)
        STORE(DST, y, row + i, exp(LOAD(SRC, x, row + i) - most) / sum);
}
