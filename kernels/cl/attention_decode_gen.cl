/* SPDX-License-Identifier: Apache-2.0
 *
 * Attends to one partition of the keys for a tile of rows; finishes the rows if there is only one
 * partition (DECODE_PARAMETERS). A work-group of ITEMS computes one (head of K
 * and V, tile, p).
 */
#include "attention_group.h"

/* Writes row i of a partition: o, then m and l. */
static void
write_partial(__local const struct tile *t, int i, const float o[ITEM_DIMS],
              __global float *to)
{
    const int me = get_local_id(0);
    for (int d = 0; d < ITEM_DIMS; d++)
        if (me + d * ITEMS < DV)
            to[me + d * ITEMS] = o[d];
    if (me == 0) {
        to[DV] = t->m[i];
        to[DV + 1] = t->l[i];
    }
}

__kernel void
attention_decode_gen(ATTENTION_PARAMETERS, DECODE_PARAMETERS)
{
    __local struct tile t;
    const struct attention a = ATTENTION_ARGUMENTS;
    const uint unit = get_group_id(0), p = unit % (uint)partitions;
    const struct rows r = rows_of(&a, unit / (uint)partitions);
    float o[ROWS][ITEM_DIMS];
    const int first = first_seen(&a, &r.s, 0) + (int)p * partition_keys;
    attend_rows(&a, &r, &t, o, first, min(first + partition_keys, r.s.keys));
    for (int i = 0; i < r.n && partitions > 1; i++)
        write_partial(&t, i, o[i],
                      partial + (row_index(&r, i) * (uint)partitions + p) * (DV + 2));
    for (int i = 0; i < ROWS; i++)
        finish_row(&a, &r, &t, i, o[i], i < r.n && partitions == 1, out);
}
