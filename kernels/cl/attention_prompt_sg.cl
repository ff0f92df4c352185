/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[r,h,:]    = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * A sub-group computes a block of QUERY_ROWS rows that share a head of K and V; the blocks of a
 * work-group are neighbours and read the same keys at about the same time.
 */
#include "sub_group_attention.h"

SUB_GROUP_SIZE __kernel void
attention_prompt_sg(ATTENTION_PARAMETERS, __global STORAGE(SRC) * out)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    struct query_rows r;
    begin_rows(&a, &r, sub_group_index());
    if (r.n == 0)
        return;
    attend(&a, &r, 0, r.s.keys);
    finish_rows(&a, &r, out);
}
