/* SPDX-License-Identifier: Apache-2.0
 *
 * q, k and v on their way into attention (attention_inputs.h). A work-group of ITEMS makes one
 * row, a work-item every ITEMS-th element, or block where the cache has blocks.
 */
#include "attention_inputs.h"
#include "group.h"

__kernel void
attention_inputs_gen(INPUT_PARAMETERS)
{
    __local float parts[ITEMS];
    const int me = get_local_id(0);
    const struct inputs in = INPUT_ARGUMENTS;
    const struct input_row r = find_row(&in, get_group_id(0));
    float squares = 0.0f, most = 0.0f;
    for (int i = me; i < r.n; i += ITEMS) {
        const float x = LOAD(SRC, r.x, i);
        squares += x * x;
    }
    const float factor = norm_factor(&r, group_sum(parts, squares), epsilon);
#if ANY_IS(IS_i8)
    for (int i = me; i < r.n; i += ITEMS)
        most = fmax(most, fabs(finished(&r, i, factor)));
    most = group_max(parts, most);
    if (me == 0)
        store_row_scale(&r, most);
#endif
    /* behind all barriers: PoCL 6 does not keep to a return before one */
    if (is_in_blocks(&r))
        store_blocks(&r, factor, me, ITEMS);
    else
        for (int i = me; i < r.n; i += ITEMS)
            store_finished(&r, i, finished(&r, i, factor), inverse_scale(most));
}
