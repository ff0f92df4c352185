/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[b,t,h,:] = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * A work-item makes one row (b, t, h) and walks all keys it sees. A row that sees none gives
 * zeros.
 */
#include "attention_row.h"

__kernel void
attention_prompt_ref(ATTENTION_PARAMETERS, __global STORAGE(SRC) *out, int batch)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const ulong row = get_global_id(0);
    const int head = row % HEADS_Q, t = row / HEADS_Q % tokens, b = row / HEADS_Q / tokens;
    struct row_state s;
    attend_row(&a, b, t, head, 0, a.keys, &s);
    finish_row(&a, &s, row, out);
}
