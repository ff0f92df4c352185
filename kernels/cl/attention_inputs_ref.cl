/* SPDX-License-Identifier: Apache-2.0
 *
 * q, k and v on their way into attention (attention_inputs.h). A work-item makes one row.
 */
#include "attention_inputs.h"

__kernel void
attention_inputs_ref(INPUT_PARAMETERS)
{
    const struct inputs in = INPUT_ARGUMENTS;
    const struct input_row r = find_row(&in, get_global_id(0));
    float squares = 0.0f, most = 0.0f;
    for (int i = 0; i < r.n; i++) {
        const float x = LOAD(SRC, r.x, i);
        squares += x * x;
    }
    const float factor = norm_factor(&r, squares, epsilon);
    if (is_in_blocks(&r)) {
        store_blocks(&r, factor, 0, 1);
        return;
    }
#if ANY_IS(IS_i8)
    for (int i = 0; i < r.n && !r.q_out; i++)
        most = fmax(most, fabs(finished(&r, i, factor)));
    store_row_scale(&r, most);
#endif
    for (int i = 0; i < r.n; i++)
        store_finished(&r, i, finished(&r, i, factor), inverse_scale(most));
}
