/* SPDX-License-Identifier: Apache-2.0
 *
 * Half-split rotary embedding; formula and operands as in rope_ref. A work-group of ITEMS
 * work-items computes all heads of one token, neighbours in neighbouring lanes. y may be x.
 */
#include "sub_group_work_group.h"

SUB_GROUP_SIZE WORK_GROUP_SIZE __kernel void
rope_sg(__global const STORAGE(SRC) * x, __global const float *cos_table,
        __global const float *sin_table, __global STORAGE(SRC) * y, ulong tokens,
        ulong table_tokens, int heads, int d, int rotated)
{
    const ulong t = get_group_id(0), table = t % table_tokens * rotated;
    const int half_r = rotated / 2, rest = d - 2 * half_r, me = (int)get_local_id(0);
    for (int i = me; i < heads * half_r; i += ITEMS) {
        const int j = i % half_r;
        const ulong at = (t * heads + i / half_r) * d + j;
        const float a = LOAD(SRC, x, at), b = LOAD(SRC, x, at + half_r);
        const float u = a * cos_table[table + j] - b * sin_table[table + j];
        const float v =
            b * cos_table[table + half_r + j] + a * sin_table[table + half_r + j];
        STORE(SRC, y, at, u);
        STORE(SRC, y, at + half_r, v);
    }
    for (int i = me; i < heads * rest; i += ITEMS) {
        const ulong at = (t * heads + i / rest) * d + 2 * half_r + i % rest;
        STORE(SRC, y, at, LOAD(SRC, x, at));
    }
}
