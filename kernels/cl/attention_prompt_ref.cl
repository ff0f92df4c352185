/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[r,h,:]    = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * A work-item computes one row (r, h) and walks all keys it sees. A row that sees none gives zeros.
 */
#include "attention_row.h"

__kernel void
attention_prompt_ref(ATTENTION_PARAMETERS, __global STORAGE(SRC) *out)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    ulong row;
    const struct sequence s = sequence_of(&a, get_global_id(0), &row);
    struct row_state state;
    attend_row(&a, &s, row / HEADS_Q - s.begin, row % HEADS_Q, 0, s.keys, &state);
    finish_row(&a, &state, row, out);
}
