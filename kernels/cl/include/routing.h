/* SPDX-License-Identifier: Apache-2.0
 *
 * The routing formula that a kernel is built for: row number ROUTING of routings.def.
 */
#include "own_experts.h"

#ifndef ROUTING
#define ROUTING 0
#endif
#ifndef NORMALISE
#define NORMALISE 1
#endif
/* The formulas are written with C's function names. */
#define expf   exp
#define fabsf  fabs
#define fmaxf  fmax
#define log1pf log1p
#define sqrtf  sqrt

enum { UNDIVIDED, OVER_CHOSEN, OVER_ALL };
enum { BY_LOGIT, BY_WEIGHT };

#define ROUTING_FORM(number, id, text, weight, divisor, chosen_by, scores)                \
    enum { divisor_##number = divisor, chosen_by_##number = chosen_by };                  \
    static inline float weight_##number(float x, float largest) { return weight; }
#include "routings.def"

#define OF_ROW(name, number) name##number
#define OF_ROUTING(name, number) OF_ROW(name, number)
#define DIVISOR   OF_ROUTING(divisor_, ROUTING)
#define CHOSEN_BY OF_ROUTING(chosen_by_, ROUTING)
#define weight_of OF_ROUTING(weight_, ROUTING)

/* Parameters of kernels that route; xm_router_put appends the arguments. */
#define ROUTING_PARAMETERS                                                               \
    __global const float *logits, __global const float *router_bias,                     \
        __global const float *expert_scale, __global float *weights, __global int *ids,  \
        uint experts, uint top_k, float epsilon, float least, float scale

/* Returns the score by which experts are chosen; -infinity for NaN. */
static inline float
score_of(__global const float *logits, __global const float *bias, uint e)
{
    const float score = CHOSEN_BY == BY_LOGIT
                            ? logits[e]
                            : weight_of(logits[e], 0.0f) + (bias ? bias[e] : 0.0f);
    return isnan(score) ? -INFINITY : score;
}
