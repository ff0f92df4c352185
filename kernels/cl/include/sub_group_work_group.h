/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over a work-group of ITEMS work-items: each sub-group reduces in registers, then the
 * sub-groups' results go through local memory. All work-items must call them and all get the
 * result.
 */
#include "sub_group.h"

#ifndef ITEMS
#define ITEMS 128 /* the launch's local size */
#endif
#define SUB_GROUPS (ITEMS / SG)

#define WORK_GROUP_SIZE __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

static inline float
work_group_sum(float x, __local float parts[SUB_GROUPS])
{
    const float part = sub_group_reduce_add(x);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_sub_group_local_id() == 0)
        parts[get_sub_group_id()] = part;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
#pragma unroll
    for (uint i = 0; i < SUB_GROUPS; i++)
        sum += parts[i];
    return sum;
}

static inline float
work_group_max(float x, __local float parts[SUB_GROUPS])
{
    const float part = sub_group_reduce_max(x);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_sub_group_local_id() == 0)
        parts[get_sub_group_id()] = part;
    barrier(CLK_LOCAL_MEM_FENCE);
    float most = parts[0];
#pragma unroll
    for (uint i = 1; i < SUB_GROUPS; i++)
        most = fmax(most, parts[i]);
    return most;
}
