/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing of one token per sub-group, experts across the lanes; f32 throughout. Formulas, order
 * and ties are those of moe_route_ref. Slot s ends in lane s: top_k is at most SG. Global size
 * {T * SG}.
 */
#include "routing.h"
#include "sub_group.h"

/* The expert that comes after `last` in order of score. */
static inline int
next_best(__global const float *logits, __global const float *bias, uint experts,
          int last)
{
    const float bound = last < 0 ? INFINITY : score_of(logits, bias, (uint)last);
    float best_score = -INFINITY;
    int best = INT_MAX;
    for (int e = (int)get_sub_group_local_id(); e < (int)experts; e += SG) {
        const float score = score_of(logits, bias, (uint)e);
        const bool after = last < 0 || score < bound || (score == bound && e > last);
        if (after && (best == INT_MAX || score > best_score)) {
            best = e;
            best_score = score;
        }
    }
    const float top = sub_group_reduce_max(best_score);
    return sub_group_reduce_min(best_score == top ? best : INT_MAX);
}

SUB_GROUP_SIZE __kernel void
moe_route_sg(__global const float *logits, __global const float *bias,
             __global const float *expert_scale, __global float *weights,
             __global int *ids, uint experts, uint top_k, float epsilon, float least,
             float factor, uint tokens)
{
    const ulong t = sub_group_index();
    const uint lane = get_sub_group_local_id();
    if (t >= tokens)
        return;
    logits += t * experts;
    int last = -1, id = 0, first = 0;
#pragma unroll 1
    for (uint s = 0; s < top_k; s++) {
        last = next_best(logits, bias, experts, last);
        id = lane == s ? last : id;
        first = s == 0 ? last : first;
    }
    const bool in = lane < top_k;
    const float logit = logits[id], largest = logits[first];
    float weight;
#if ROUTING == 2
    weight = 1.0f / (1.0f + exp(-logit));
#else
    float part = 0.0f;
#if ROUTING == 0
    for (uint e = lane; e < experts; e += SG)
        part += exp(logits[e] - largest);
#else
    part = in ? exp(logit - largest) : 0.0f;
#endif
    weight = exp(logit - largest) / sub_group_reduce_add(part);
#endif
    if (NORMALISE) {
        const float sum = sub_group_reduce_add(in ? weight : 0.0f) + epsilon;
        factor /= sum < least ? least : sum;
    }
    if (!in)
        return;
    ids[t * top_k + lane] = id;
    weights[t * top_k + lane] =
        weight * (expert_scale ? factor * expert_scale[id] : factor);
}
