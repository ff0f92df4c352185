/* SPDX-License-Identifier: Apache-2.0
 *
 * One partition of the keys for one row: partial[row][p] = { o[DV], m, l }, rows (b, t, h).
 * attention_combine joins the partitions. Partition p has the keys from
 * first_key + p * partition_keys on. A work-item makes one (row, p).
 */
#include "attention_row.h"

__kernel void
attention_decode_ref(ATTENTION_PARAMETERS, __global float *partial, int batch,
                     long first_key, long partition_keys, int partitions)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const ulong id = get_global_id(0), row = id / partitions;
    const int head = row % HEADS_Q, t = row / HEADS_Q % tokens, b = row / HEADS_Q / tokens;
    const long first = first_key + id % partitions * partition_keys;
    struct row_state s;
    attend_row(&a, b, t, head, first, min(first + partition_keys, a.keys), &s);
    __global float *to = partial + id * (DV + 2);
    for (int i = 0; i < DV; i++)
        to[i] = s.o[i];
    to[DV] = s.m;
    to[DV + 1] = s.l;
}
