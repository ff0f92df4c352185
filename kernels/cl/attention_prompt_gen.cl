/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[r,h,:]    = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * A work-group of ITEMS computes a tile of rows: one (head of K and V, tile). A row that sees
 * no key gives zeros.
 */
#include "attention_group.h"

__kernel void
attention_prompt_gen(ATTENTION_PARAMETERS, __global STORAGE(SRC) *out)
{
    __local struct tile t;
    const struct attention a = ATTENTION_ARGUMENTS;
    const struct rows r = rows_of(&a, get_group_id(0));
    float o[ROWS][ITEM_DIMS];
    attend_rows(&a, &r, &t, o, 0, r.s.keys);
    for (int i = 0; i < ROWS; i++)
        finish_row(&a, &r, &t, i, o[i], i < r.n, out);
}
