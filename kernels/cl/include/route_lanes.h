/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing of a token by a sub-group, with experts distributed over the lanes; f32 throughout.
 * Formulas, order and ties are those of moe_route_ref. Lane s gets slot s: top_k is at most SG.
 *
 *   EXPERTS  number of experts, if it is a constant: their scores stay in registers; 0: it is not
 */
#include "routing.h"
#include "sub_group.h"

#ifndef EXPERTS
#define EXPERTS 0
#endif

/* For each lane: the expert of its slot, the expert of slot 0, and the expert found last. */
struct route {
    int id, first, last;
};

#if EXPERTS
/* Scores of a lane's experts j SG + lane, as integers of the same order. */
enum { PER_LANE = (EXPERTS + SG - 1) / SG, TAKEN = INT_MIN };
struct scores {
    int of[PER_LANE];
};

static inline void
take_scores(struct scores *s, __global const float *logits, __global const float *bias,
            uint experts)
{
#pragma unroll
    for (uint j = 0; j < PER_LANE; j++) {
        const uint e = j * SG + get_sub_group_local_id();
        const float score = score_of(logits, bias, min(e, (uint)EXPERTS - 1));
        const int bits = score == 0.0f ? 0 : as_int(score); /* -0 and +0 are equal */
        s->of[j] = e < EXPERTS ? bits ^ (bits >> 31 & INT_MAX) : TAKEN;
    }
}

/* Returns the expert with the largest score (of equal ones the lowest) and marks it as taken. */
static inline int
next_best(struct scores *s)
{
    const int lane = (int)get_sub_group_local_id();
    int most = TAKEN, first = INT_MAX;
#pragma unroll
    for (int j = 0; j < PER_LANE; j++)
        most = max(most, s->of[j]);
    most = sub_group_reduce_max(most);
#pragma unroll
    for (int j = PER_LANE; j-- > 0;)
        first = s->of[j] == most ? j * SG + lane : first;
    first = sub_group_reduce_min(first);
#pragma unroll
    for (int j = 0; j < PER_LANE; j++)
        s->of[j] = first == j * SG + lane ? TAKEN : s->of[j];
    return first;
}
#else
struct scores {
    __global const float *logits, *bias;
    uint experts;
    int last;    /* expert found last */
    float bound; /* score of `last` */
};

static inline void
take_scores(struct scores *s, __global const float *logits, __global const float *bias,
            uint experts)
{
    *s = (struct scores){logits, bias, experts, -1, INFINITY};
}

/* Returns the next expert after `last` in order of score. */
static inline int
next_best(struct scores *s)
{
    float best_score = -INFINITY;
    int best = INT_MAX;
    for (int e = (int)get_sub_group_local_id(); e < (int)s->experts; e += SG) {
        const float score = score_of(s->logits, s->bias, (uint)e);
        const bool after =
            s->last < 0 || score < s->bound || (score == s->bound && e > s->last);
        if (after && (best == INT_MAX || score > best_score)) {
            best = e;
            best_score = score;
        }
    }
    s->bound = sub_group_reduce_max(best_score);
    s->last = sub_group_reduce_min(best_score == s->bound ? best : INT_MAX);
    return s->last;
}
#endif

/* Finds the experts of the first `slots` slots, at least one. */
static inline struct route
find_experts(__global const float *logits, __global const float *bias, uint experts,
             uint slots)
{
    struct route r = {0, 0, -1};
    struct scores scores;
    uint s = 0;
    take_scores(&scores, logits, bias, experts);
#pragma unroll 1
    do {
        r.last = next_best(&scores);
        r.id = get_sub_group_local_id() == s ? r.last : r.id;
        r.first = s == 0 ? r.last : r.first;
    } while (++s < slots);
    return r;
}

/* Returns the weight of a lane's slot, after the experts of all slots have been found. */
static inline float
weight_of_slot(const struct route *r, __global const float *logits,
               __global const float *expert_scale, uint experts, uint top_k, float epsilon,
               float least, float scale)
{
    const uint lane = get_sub_group_local_id();
    const bool in = lane < top_k;
    const float logit = logits[r->id], largest = logits[r->first];
    float weight = weight_of(logit, largest);
    if (DIVISOR != UNDIVIDED) {
        float part = in ? weight : 0.0f;
        if (DIVISOR == OVER_ALL)
            part = 0.0f;
        for (uint e = lane; DIVISOR == OVER_ALL && e < experts; e += SG)
            part += weight_of(logits[e], largest);
        weight /= sub_group_reduce_add(part);
    }
    if (NORMALISE) {
        const float sum = sub_group_reduce_add(in ? weight : 0.0f) + epsilon;
        scale /= sum < least ? least : sum;
    }
    return weight * (expert_scale ? scale * expert_scale[r->id] : scale);
}
