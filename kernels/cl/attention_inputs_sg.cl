/* SPDX-License-Identifier: Apache-2.0
 *
 * q, k and v on their way into attention (attention_inputs.h). A sub-group makes one row, its
 * elements across the lanes.
 */
#include "attention_inputs.h"
#include "sub_group.h"

SUB_GROUP_SIZE __kernel void
attention_inputs_sg(INPUT_PARAMETERS)
{
    const ulong id = sub_group_index();
    const int lane = (int)get_sub_group_local_id();
    const struct inputs in = INPUT_ARGUMENTS;
    if (id >= rows)
        return;
    const struct input_row r = find_row(&in, id);
    float squares = 0.0f, most = 0.0f;
    for (int i = lane; i < r.n; i += SG) {
        const float x = LOAD(SRC, r.x, i);
        squares += x * x;
    }
    const float factor = norm_factor(&r, sub_group_reduce_add(squares), epsilon);
#if CACHE_SCALED
    for (int i = lane; i < r.n; i += SG)
        most = fmax(most, fabs(finished(&r, i, factor)));
    most = sub_group_reduce_max(most);
    if (lane == 0 && r.scale)
        r.scale[0] = most / 127.0f;
#endif
    for (int i = lane; i < r.n; i += SG)
        store_finished(&r, i, finished(&r, i, factor), inverse_scale(most));
}
