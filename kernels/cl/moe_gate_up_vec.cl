/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * with the options of gate_up.h. A work-item computes per_item neighbouring i of one slot,
 * alternating between gate rows and up rows: it reads two long ranges in order. Global size
 * {I / per_item rounded up, slots}, local size 1. x is prepared rows (prepared.h).
 *
 * prepared (NULL: unwanted): also writes h as prepared rows (prepared.h), for moe_down_vec; then
 * per_item is a multiple of their blocks and groups.
 */
#define REAL float16
#define REAL_IS_16
#include "gate_up.h"
#include "own_experts.h"
#include "gemv_rows.h"

__kernel void
moe_gate_up_vec(GATE_UP_PARAMETERS, __global const int *x,
                __global const int *ids, uint top_k, __global float *h,
                __global int *prepared, uint i_count, uint k_count, uint per_item)
{
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const ulong slot = get_global_id(1), expert = ids[slot];
    const uint first = (uint)get_global_id(0) * per_item;
    const uint end = min(first + per_item, i_count);
    if (IS_ABSENT(ids[slot])) {
        for (uint i = first; i < end; i++)
            h[slot * i_count + i] = 0.0f;
        return;
    }
    __global const int *row = x_row_at(x, slot / top_k, k_count).x;
    for (uint i = first; i < end; i += ROWS_AT_ONCE) {
        const uint count = min(end - i, (uint)ROWS_AT_ONCE);
        float16 a, b;
        products_in_turn(&gates, stored_row(&gates, expert, i), &ups,
                         stored_row(&ups, expert, i), count, row, 1, &a, &b);
        STORE_SOME(f32, h, slot * i_count + i, count,
                   gate_times_up16(&g, expert, i, a, b));
    }
    if (prepared)
        prepare_part_f32(h + slot * i_count, i_count, first, end,
                         prepared + slot * prepared_words(i_count, FORM), FORM);
}
