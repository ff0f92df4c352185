/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalises, rotates and stores q, k and v for attention (attention_inputs.h). A work-item
 * computes one row.
 */
#include "attention_inputs.h"

__kernel void
attention_inputs_ref(INPUT_PARAMETERS)
{
    const struct inputs in = INPUT_ARGUMENTS;
    const struct input_row r = find_row(&in, get_global_id(0));
    float squares = 0.0f;
    for (int i = 0; i < r.n; i++) {
        const float x = LOAD(SRC, r.x, i);
        squares += x * x;
    }
    const float factor = norm_factor(&r, squares, epsilon);
    float y[MOST_ELEMENTS];
    for (int i = 0; i < r.n; i++)
        y[i] = finished(&r, i, factor);
    rotate_elements(y, r.n, r.block);
    if (has_scales(&r))
        for (int i = 0; r.to.values && i < r.n; i += 32)
            store_32(&r, i, y + i);
    else
        for (int i = 0; i < r.n; i++)
            store_finished(&r, i, y[i]);
}
