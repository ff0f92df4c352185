/* SPDX-License-Identifier: Apache-2.0
 *
 * Attends to one partition of the keys for a block of rows; finishes the rows if there is only one
 * partition (DECODE_PARAMETERS). A sub-group computes one block of QUERY_ROWS rows of one
 * partition.
 */
#include "sub_group_attention.h"

static inline void
write_partials(const struct query_rows *r, int partitions, __global float *partial)
{
    const uint lane = get_sub_group_local_id();
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        __global float *to = partial + row_index(r, i) * partitions * (DV + 2);
        if (r->first + i >= r->n)
            continue;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (IS_VALUE(c))
                to[value_index(c)] = r->o[i][c];
        }
        if (lane == 0) {
            to[DV] = r->m[i];
            to[DV + 1] = r->l[i];
        }
    }
}

SUB_GROUP_SIZE __kernel void
attention_decode_sg(ATTENTION_PARAMETERS, DECODE_PARAMETERS)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const uint unit = sub_group_index(), p = unit % (uint)partitions;
    struct query_rows r;
    begin_rows(&a, &r, unit / (uint)partitions);
    if (r.n == 0)
        return;
    const int first = first_seen(&a, &r.s, 0) + (int)p * partition_keys;
    attend(&a, &r, first, min(first + partition_keys, r.s.keys));
    if (partitions == 1)
        finish_rows(&a, &r, out);
    else
        write_partials(&r, partitions, partial + p * (DV + 2));
}
