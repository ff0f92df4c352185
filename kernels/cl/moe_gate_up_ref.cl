/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * with the options of gate_up.h. A work-item computes one element; global size {I, slots}.
 */
#include "gate_up.h"
#include "own_experts.h"
#include "weights.h"

static float
product(const struct weight *w, ulong row, __global const STORAGE(SRC) * x)
{
    float sum = 0;
    for (uint k = 0; k < w->k_count; k++)
        sum += weight_at(w, row, k) * LOAD(SRC, x, k);
    return sum;
}

__kernel void
moe_gate_up_ref(GATE_UP_PARAMETERS, __global const STORAGE(SRC) * x,
                __global const int *ids, uint top_k, __global float *h,
                __global int *prepared, uint i_count, uint k_count)
{
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint i = (uint)get_global_id(0);
    const ulong slot = get_global_id(1), expert = ids[slot];
    if (IS_ABSENT(ids[slot])) {
        h[slot * i_count + i] = 0.0f;
        return;
    }
    x += slot / top_k * k_count;
    h[slot * i_count + i] =
        gate_times_up(&g, expert, i, product(&gates, stored_row(&gates, expert, i), x),
                      product(&ups, stored_row(&ups, expert, i), x));
}
