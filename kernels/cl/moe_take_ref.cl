/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes routing that the model's graph has computed.
 *
 *     weights[i] = given[i] expert_scale[chosen[i]],   ids[i] = chosen[i]
 *
 * An id that no expert has becomes expert 0 with weight 0. A work-item computes one slot; global
 * size {slots}.
 */
#include "own_experts.h"

__kernel void
moe_take_ref(__global const float *given, __global const int *chosen,
             __global const float *expert_scale, __global float *weights,
             __global int *ids, uint experts)
{
    const ulong i = get_global_id(0);
    const bool valid = chosen[i] >= 0 && (uint)chosen[i] < experts;
    const int id = valid ? chosen[i] : 0;
    ids[i] = OWN_ID(id);
    weights[i] = valid && IS_OWN(id)
                     ? given[i] * (expert_scale ? expert_scale[id] : 1.0f)
                     : 0.0f;
}
