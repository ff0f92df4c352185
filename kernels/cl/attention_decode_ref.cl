/* SPDX-License-Identifier: Apache-2.0
 *
 * One partition of the keys for one row; the whole row where it is the only one
 * (DECODE_PARAMETERS). A work-item makes one (row, p).
 */
#include "attention_row.h"

__kernel void
attention_decode_ref(ATTENTION_PARAMETERS, DECODE_PARAMETERS)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const ulong id = get_global_id(0), row = id / partitions;
    const int head = row % HEADS_Q, t = row / HEADS_Q % tokens, b = row / HEADS_Q / tokens;
    const long first = first_key + id % partitions * partition_keys;
    struct row_state s;
    attend_row(&a, b, t, head, first, min(first + partition_keys, a.keys), &s);
    if (partitions == 1) {
        finish_row(&a, &s, row, out);
        return;
    }
    __global float *to = partial + id * (DV + 2);
    for (int i = 0; i < DV; i++)
        to[i] = s.o[i];
    to[DV] = s.m;
    to[DV + 1] = s.l;
}
