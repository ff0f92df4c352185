/* SPDX-License-Identifier: Apache-2.0
 *
 * The score by which experts are chosen, for every routing; see moe_route_ref.
 */
#ifndef ROUTING
#define ROUTING 0 /* enum xm_routing */
#endif
#ifndef NORMALISE
#define NORMALISE 1
#endif

static inline float
score_of(__global const float *logits, __global const float *bias, uint e)
{
#if ROUTING == 2
    const float score = 1.0f / (1.0f + exp(-logits[e])) + (bias ? bias[e] : 0.0f);
#else
    const float score = logits[e];
#endif
    return isnan(score) ? -INFINITY : score;
}
