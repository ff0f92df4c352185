/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalises, rotates and stores q, k and v for attention (attention_inputs.h). A work-group of
 * ITEMS computes one row, a work-item every ITEMS-th element, or two blocks if the cache has
 * scales.
 */
#include "attention_inputs.h"
#include "group_rotation.h"

#define MOST_ROTATED (KEY_ROTATION > VALUE_ROTATION ? KEY_ROTATION : VALUE_ROTATION)

/* Stores 32 elements from i on. */
static void
store_rotated(const struct input_row *r, int i, __local const float *y)
{
    float part[32];
    for (int k = 0; k < 32; k++)
        part[k] = i + k < r->n ? y[i + k] : 0.0f;
    store_32(r, i, part);
}

__kernel void
attention_inputs_gen(INPUT_PARAMETERS)
{
    __local float parts[ITEMS];
    __local float y[MOST_ELEMENTS];
    const int me = get_local_id(0);
    const struct inputs in = INPUT_ARGUMENTS;
    const struct input_row r = find_row(&in, get_group_id(0));
    float squares = 0.0f;
    for (int i = me; i < r.n; i += ITEMS) {
        const float x = LOAD(SRC, r.x, i);
        squares += x * x;
    }
    const float factor = norm_factor(&r, group_sum(parts, squares), epsilon);
    for (int i = me; i < r.n; i += ITEMS)
        y[i] = finished(&r, i, factor);
    rotate_local(y, r.n, r.block, MOST_ROTATED);
    /* follows all barriers: PoCL 6 miscompiles a return before a barrier */
    if (has_scales(&r))
        for (int i = me * 32; r.to.values && i < r.n; i += ITEMS * 32)
            store_rotated(&r, i, y);
    else
        for (int i = me; i < r.n; i += ITEMS)
            store_finished(&r, i, y[i]);
}
