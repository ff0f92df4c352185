/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * with the options of gate_up.h; or the kernel finds e from the logits (slot_expert.h). A
 * work-group computes 32 neighbouring i of one slot, K split among its sub-groups (lane_rows.h).
 * Global size {I / 32 rounded up * SG * SPLIT, slots}.
 */
#include "gate_up.h"
#include "lane_rows.h"
#include "slot_expert.h"

LANE_ROWS_GROUP __kernel void
moe_gate_up_dpas(GATE_UP_PARAMETERS, __global const STORAGE(SRC) * x, SLOT_PARAMETERS,
                 __global float *h, __global int *prepared, uint i_count, uint k_count)
{
    __local row_shares shares[2];
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint first = (uint)get_group_id(0) * UNIT_ROWS, lane = (uint)get_local_id(0);
    const ulong slot = get_group_id(1);
    const uint expert = SLOT_EXPERT(slot);
    const struct slots alone = {0, 0, 1, expert};
    const uint i = first + lane;
    if (IS_ABSENT(expert)) {
        if (lane < UNIT_ROWS && i < i_count)
            h[slot * i_count + i] = 0.0f;
        return;
    }
    x += slot / top_k * k_count;
    multiply_rows(&gates, &alone, first, i_count - 1, x, &shares[0]);
    multiply_rows(&ups, &alone, first, i_count - 1, x, &shares[1]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < UNIT_ROWS && i < i_count)
        h[slot * i_count + i] = gate_times_up(
            &g, expert, i, row_total(&shares[0], lane), row_total(&shares[1], lane));
}
