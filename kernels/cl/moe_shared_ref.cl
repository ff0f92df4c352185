/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes to the shared expert: every token goes to expert 0.
 *
 *     ids[t] = 0,   weights[t] = GATED ? sigmoid(sum_k x[t][k] w[0][k]) : 1
 *
 * A work-item computes one token; global size {T}.
 */
#include "weights.h"

#ifndef GATED
#define GATED 1
#endif

__kernel void
moe_shared_ref(WEIGHT_PARAMETERS(w), __global const STORAGE(SRC) * x,
               __global float *weights, __global int *ids, uint k_count)
{
    const ulong t = get_global_id(0);
    float weight = 1;
#if GATED
    const struct weight w = WEIGHT(w, k_count, 0);
    float sum = 0;
    for (uint k = 0; k < k_count; k++)
        sum += weight_at(&w, stored_row(&w, 0, 0), k) * LOAD(SRC, x, t * k_count + k);
    weight = 1.0f / (1.0f + exp(-sum));
#endif
    weights[t] = weight;
    ids[t] = 0;
}
