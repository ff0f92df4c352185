/* SPDX-License-Identifier: Apache-2.0
 *
 * q, k and v on their way into attention (attention_inputs.h). A sub-group makes one row, its
 * elements across the lanes.
 */
#include "attention_inputs.h"
#include "sub_group.h"

#if ANY_IS(IS_u4)
#define BLOCK_PARTS (CACHE_BLOCK / SG) /* elements of a block in a lane */

/* The first of a block's elements that have the largest magnitude; y: those of this lane, SG
 * apart. */
static inline float
first_largest(const float *y)
{
    const int lane = (int)get_sub_group_local_id();
    float mine = 0.0f;
    int at = 0;
#pragma unroll
    for (int i = 0; i < BLOCK_PARTS; i++) {
        const bool larger = fabs(y[i]) > fabs(mine);
        mine = larger ? y[i] : mine;
        at = larger ? i * SG + lane : at;
    }
    const float most = sub_group_reduce_max(fabs(mine));
    at = sub_group_reduce_min(fabs(mine) == most ? at : CACHE_BLOCK);
    return intel_sub_group_shuffle(mine, (uint)at % SG);
}

/* Block b of the finished row. */
static inline void
write_block(const struct input_row *r, int b, float factor)
{
    const int lane = (int)get_sub_group_local_id();
    float y[BLOCK_PARTS], inverse = 0.0f;
#pragma unroll
    for (int i = 0; i < BLOCK_PARTS; i++)
        y[i] = finished(r, b * CACHE_BLOCK + i * SG + lane, factor);
    const float most = first_largest(y);
#if SG == 32
    const float y16 = intel_sub_group_shuffle(y[0], (uint)(lane + 16) % SG);
#endif
    if (!r->to.values)
        return;
    inverse = begin_block(r, b, most);
#if SG == 32
    if (lane < 16)
        store_pair(r, b, lane, y[0], y16, inverse);
#else
#pragma unroll
    for (int i = 0; i < 16 / SG; i++)
        store_pair(r, b, i * SG + lane, y[i], y[i + 16 / SG], inverse);
#endif
}
#endif

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
#if ANY_IS(IS_i8)
    for (int i = lane; i < r.n; i += SG)
        most = fmax(most, fabs(finished(&r, i, factor)));
    most = sub_group_reduce_max(most);
    if (lane == 0)
        store_row_scale(&r, most);
#endif
#if ANY_IS(IS_u4)
    const int blocks = is_in_blocks(&r) ? r.n / CACHE_BLOCK : 0;
    for (int b = 0; b < blocks; b++)
        write_block(&r, b, factor);
    if (blocks)
        return;
#endif
    for (int i = lane; i < r.n; i += SG)
        store_finished(&r, i, finished(&r, i, factor), inverse_scale(most));
}
