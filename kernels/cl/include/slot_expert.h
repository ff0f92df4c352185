/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the expert of a slot, for sub-groups that multiply by its weights.
 *
 *   ROUTES  0: the expert is ids[slot]
 *           1: every sub-group finds it from the logits of its token, so that routing needs no
 *              launch of its own; the first work-group of a token's first slot also stores the
 *              ids and weights of all slots, for later kernels
 *
 * The expert may be ABSENT (own_experts.h), the same for all sub-groups of a work-group.
 *
 * All sub-groups of a work-group take the same number of turns, because a device that emulates them
 * needs them in step.
 */
#include "own_experts.h"

#ifndef ROUTES
#define ROUTES 0
#endif

#if ROUTES
#include "route_lanes.h"
#define SLOT_PARAMETERS ROUTING_PARAMETERS
#define SLOT_EXPERT(slot)                                                                \
    route_slot(slot, logits, router_bias, expert_scale, weights, ids, experts, top_k,    \
               epsilon, least, scale)

static inline uint
route_slot(ulong slot, ROUTING_PARAMETERS)
{
    const uint lane = get_sub_group_local_id(), s = (uint)(slot % top_k);
    const ulong t = slot / top_k;
    const bool stores = get_group_id(0) == 0 && s == 0;
    logits += t * experts;
    const struct route r =
        find_experts(logits, router_bias, experts, stores ? top_k : s + 1);
    /* Sub-group functions must not be inside the branch below. */
    const float weight = weight_of_slot(&r, logits, expert_scale, stores ? experts : 0, top_k,
                                        epsilon, least, scale);
    if (stores && get_sub_group_id() == 0 && lane < top_k) {
        ids[t * top_k + lane] = OWN_ID(r.id);
        weights[t * top_k + lane] = IS_OWN(r.id) ? weight : 0.0f;
    }
    const int id = stores ? r.first : r.last;
    return (uint)OWN_ID(id);
}
#else
#define SLOT_PARAMETERS   __global const int *ids, uint top_k
#define SLOT_EXPERT(slot) ((uint)ids[slot])
#endif
