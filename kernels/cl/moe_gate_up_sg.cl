/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * with the options of gate_up.h; or the kernel finds e from the logits (slot_expert.h). A sub-group
 * computes ROWS neighbouring i of one slot, K across its lanes. Global size
 * {I / ROWS rounded up * SG, slots}.
 */
#include "gate_up.h"
#include "sub_group_gemv.h"

#include "slot_expert.h" /* after the headers that it also includes */

SUB_GROUP_SIZE __kernel void
moe_gate_up_sg(GATE_UP_PARAMETERS, __global const STORAGE(SRC) * x, SLOT_PARAMETERS,
               __global float *h, __global int *prepared, uint i_count, uint k_count)
{
    const ulong slot = get_group_id(1);
    const uint expert = SLOT_EXPERT(slot);
    /* An absent slot has no columns instead of a return: behind a return that depends on what was
     * read, PoCL 6 gives each lane its own copy of the memory through which the sub-group
     * exchanges. */
    const uint columns = IS_ABSENT(expert) ? 0 : k_count;
    const struct weight gates = WEIGHT(gate, columns, 0), ups = WEIGHT(up, columns, 1);
    const struct gate_up g = GATE_UP;
    const uint first = sub_group_index() * ROWS;
    const uint i = first + get_sub_group_local_id();
    float sum[ROWS];
    if (first >= i_count)
        return;
    x += slot / top_k * k_count;
    rows_dot(&gates, stored_row(&gates, expert, first),
             stored_row(&gates, expert, i_count - 1), x, sum);
    const float gate = lane_total(sum);
    rows_dot(&ups, stored_row(&ups, expert, first), stored_row(&ups, expert, i_count - 1), x,
             sum);
    const float up = lane_total(sum);
    if (get_sub_group_local_id() < ROWS && i < i_count)
        h[slot * i_count + i] =
            IS_ABSENT(expert) ? 0.0f : gate_times_up(&g, expert, i, gate, up);
}
