/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the chosen experts, straight from the token rows; few tokens.
 *
 *     h[slot][i] = act(x[t] . gate[e][i]) * (x[t] . up[e][i]),   e = ids[slot], t = slot / top_k
 *
 * with the options of gate_up.h. A work-group of ITEMS computes ROWS elements of a slot; groups
 * {I / ROWS, slots}.
 */
#include "gate_up.h"
#include "own_experts.h"
#include "row_dots.h"

__kernel void
moe_gate_up_gen(GATE_UP_PARAMETERS, __global const STORAGE(SRC) *x,
                __global const int *ids, uint top_k, __global float *h,
                __global int *prepared, uint i_count, uint k_count)
{
    __local float chunk[CHUNK_FLOATS], parts[2 * ROWS * ITEMS];
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint i = (uint)get_group_id(0) * ROWS, me = get_local_id(0);
    const ulong slot = get_group_id(1);
    const ulong expert = IS_ABSENT(ids[slot]) ? 0 : ids[slot];
    const ulong gate_row = stored_row(&gates, expert, i), up_row = stored_row(&ups, expert, i);
    float sum[2 * ROWS]; /* products with gate, then with up */
    for (uint r = 0; r < 2 * ROWS; r++)
        sum[r] = 0.0f;
    x += slot / top_k * k_count;
    const uint k_end = IS_ABSENT(ids[slot]) ? min(k_count, 1u) : k_count;
    for (uint k = 0; k < k_end; k += CHUNK) {
        stage_chunk(chunk, x, k, k_count);
        add_rows(&gates, gate_row, gate_row + i_count - i, k, chunk, 1.0f, sum);
        add_rows(&ups, up_row, up_row + i_count - i, k, chunk, 1.0f, sum + ROWS);
    }
    group_sums(parts, sum, 2 * ROWS);
    for (uint r = 0; r < ROWS; r++) {
        if (me == r && i + r < i_count)
            h[slot * i_count + i + r] =
                IS_ABSENT(ids[slot])
                    ? 0.0f
                    : gate_times_up(&g, expert, i + r, sum[r], sum[ROWS + r]);
    }
}
