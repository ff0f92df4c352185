/* SPDX-License-Identifier: Apache-2.0
 *
 * One partition of the keys for a tile of rows: partial[row][p] = { o[DV], m, l } as in
 * attention_decode_ref. A work-group of ITEMS makes one (tile, p); one group a (b, head of K and
 * V, tile, p).
 */
#include "attention_group.h"

__kernel void
attention_decode_gen(ATTENTION_PARAMETERS, __global float *partial, int batch,
                     long first_key, long partition_keys, int partitions)
{
    __local struct tile t;
    const struct attention a = ATTENTION_ARGUMENTS;
    const struct rows r = rows_of(&a, get_group_id(0) / partitions);
    const int p = get_group_id(0) % partitions, me = get_local_id(0);
    const long first = first_key + p * partition_keys;
    float o[ROWS][ITEM_DIMS];
    attend_rows(&a, &r, &t, o, first, min(first + partition_keys, a.keys));
    for (int i = 0; i < ROWS; i++) {
        if (i >= r.n)
            continue;
        __global float *to = partial + (row_index(&a, &r, i) * partitions + p) * (DV + 2);
        for (int d = 0; d < ITEM_DIMS; d++)
            if (me + d * ITEMS < DV)
                to[me + d * ITEMS] = o[i][d];
        if (me == 0) {
            to[DV] = t.m[i];
            to[DV + 1] = t.l[i];
        }
    }
}
