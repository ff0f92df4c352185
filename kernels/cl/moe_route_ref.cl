/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes one token in each work-item; global size {T}. f32 throughout.
 *
 * Chooses experts and computes their weights as a row of routings.def says, then
 * weights / max(sum + epsilon, least) if NORMALISE, times scale, times expert_scale[id].
 * Largest first; ties: the lower expert first. Each pass finds the next largest after the last one
 * found, so that nothing is stored; NaN counts as the smallest: ids are always valid and distinct.
 */
#include "routing.h"

/* Returns the expert that comes after `last` in order of score; last < 0: the first. */
static inline int
next_best(__global const float *logits, __global const float *bias, uint experts,
          int last)
{
    const float bound = last < 0 ? INFINITY : score_of(logits, bias, (uint)last);
    float best_score = 0;
    int best = -1;
    for (int e = 0; e < (int)experts; e++) {
        const float score = score_of(logits, bias, (uint)e);
        const bool after = last < 0 || score < bound || (score == bound && e > last);
        if (after && (best < 0 || score > best_score)) {
            best = e;
            best_score = score;
        }
    }
    return best;
}

__kernel void
moe_route_ref(ROUTING_PARAMETERS, uint tokens)
{
    const ulong t = get_global_id(0);
    logits += t * experts;
    weights += t * top_k;
    ids += t * top_k;
    int last = -1;
    for (uint s = 0; s < top_k; s++) {
        last = next_best(logits, router_bias, experts, last);
        ids[s] = last;
    }
    const float largest = logits[ids[0]];
    float all = 0;
    for (uint e = 0; DIVISOR == OVER_ALL && e < experts; e++)
        all += weight_of(logits[e], largest);
    for (uint s = 0; DIVISOR == OVER_CHOSEN && s < top_k; s++)
        all += weight_of(logits[ids[s]], largest);
    float sum = epsilon;
    for (uint s = 0; s < top_k; s++) {
        weights[s] = weight_of(logits[ids[s]], largest);
        if (DIVISOR != UNDIVIDED)
            weights[s] /= all;
        sum += weights[s];
    }
    if (NORMALISE)
        scale /= sum < least ? least : sum;
    for (uint s = 0; s < top_k; s++) {
        const int id = ids[s];
        weights[s] *= expert_scale ? scale * expert_scale[id] : scale;
        weights[s] = IS_OWN(id) ? weights[s] : 0.0f;
        ids[s] = OWN_ID(id);
    }
}
