/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts rows back into token order, summed over the slots in f32.
 *
 *     out[t][n] = (add[t][n] +) sum_s weights[t][s] y[place[t][s]][n]
 *
 * A work-item computes one element; global size {H, T}.
 */
#include "own_experts.h"
#include "types.h"

#ifndef ADD
#define ADD f32 /* type of add */
#endif

__kernel void
moe_combine_ref(__global const float *y, __global const uint *place,
                __global const float *weights, __global const STORAGE(ADD) *add,
                __global STORAGE(DST) * out, uint n_count, uint top_k)
{
    const ulong n = get_global_id(0), t = get_global_id(1);
    float sum = add ? LOAD(ADD, add, t * n_count + n) : 0.0f;
    for (ulong slot = t * top_k; slot < (t + 1) * top_k; slot++) {
        if (!PARTIAL || place[slot] != NOWHERE)
            sum += weights[slot] * y[place[slot] * n_count + n];
    }
    STORE(DST, out, t * n_count + n, sum);
}
