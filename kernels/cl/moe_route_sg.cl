/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes one token in each sub-group (route_lanes.h). Global size {T * SG}.
 */
#include "route_lanes.h"

SUB_GROUP_SIZE __kernel void
moe_route_sg(ROUTING_PARAMETERS, uint tokens)
{
    const ulong t = sub_group_index();
    const uint lane = get_sub_group_local_id();
    if (t >= tokens)
        return;
    logits += t * experts;
    const struct route r = find_experts(logits, router_bias, experts, top_k);
    const float weight = weight_of_slot(&r, logits, expert_scale, experts, top_k, epsilon,
                                        least, scale);
    if (lane >= top_k)
        return;
    ids[t * top_k + lane] = OWN_ID(r.id);
    weights[t * top_k + lane] = IS_OWN(r.id) ? weight : 0.0f;
}
