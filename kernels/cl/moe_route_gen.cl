/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes one token by a work-group of ITEMS; groups {T}. Formulas, order, ties and NaN as in
 * moe_route_ref: each pass finds the next largest score after the last one found, every
 * work-item among its own experts and then all together.
 */
#include "group.h"
#include "routing.h"

/* Returns whether expert a with score x comes before expert b with score y; b < 0: there is no
 * b. */
static inline bool
comes_before(float x, int a, float y, int b)
{
    return a >= 0 && (b < 0 || x > y || (x == y && a < b));
}

/* Returns the expert that comes after `last` in order of score; last < 0: the first. */
static int
next_best(__global const float *logits, __global const float *bias, uint experts,
          int last, __local float *scores, __local int *found)
{
    const uint me = get_local_id(0);
    const float bound = last < 0 ? INFINITY : score_of(logits, bias, (uint)last);
    float best_score = 0.0f;
    int best = -1;
    for (uint e = me; e < experts; e += ITEMS) {
        const float score = score_of(logits, bias, e);
        const bool after = last < 0 || comes_before(bound, last, score, (int)e);
        if (after && comes_before(score, (int)e, best_score, best)) {
            best = (int)e;
            best_score = score;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    scores[me] = best_score;
    found[me] = best;
    for (uint left = ITEMS / 2; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < left &&
            comes_before(scores[me + left], found[me + left], scores[me], found[me])) {
            scores[me] = scores[me + left];
            found[me] = found[me + left];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return found[0];
}

__kernel void
moe_route_gen(ROUTING_PARAMETERS, uint tokens)
{
    __local float parts[ITEMS];
    __local int found[ITEMS];
    const uint me = get_local_id(0);
    const ulong t = get_group_id(0);
    logits += t * experts;
    weights += t * top_k;
    ids += t * top_k;
    float all = 0.0f, sum = epsilon, largest = 0.0f;
    int last = -1;
    for (uint s = 0; s < top_k; s++) {
        last = next_best(logits, router_bias, experts, last, parts, found);
        const float logit = logits[last];
        if (s == 0)
            largest = logit;
        const float weight = weight_of(logit, largest);
        all += weight;
        if (me == 0) {
            ids[s] = last;
            weights[s] = weight;
        }
    }
    if (DIVISOR == OVER_ALL) {
        all = 0.0f;
        for (uint e = me; e < experts; e += ITEMS)
            all += weight_of(logits[e], largest);
        all = group_sum(parts, all);
    }
    if (me > 0)
        return;
    for (uint s = 0; s < top_k; s++) {
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
