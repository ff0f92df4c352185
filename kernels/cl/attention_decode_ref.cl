/* SPDX-License-Identifier: Apache-2.0
 *
 * Attends to one partition of the keys for one row; finishes the row if there is only one partition
 * (DECODE_PARAMETERS). A work-item computes one (row, p).
 */
#include "attention_row.h"

__kernel void
attention_decode_ref(ATTENTION_PARAMETERS, DECODE_PARAMETERS)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const int p = get_global_id(0) % partitions;
    ulong row;
    const struct sequence s = sequence_of(&a, get_global_id(0) / partitions, &row);
    const int t = row / HEADS_Q - s.begin,
              first = first_seen(&a, &s, 0) + p * partition_keys;
    struct row_state state;
    attend_row(&a, &s, t, row % HEADS_Q, first, min(first + partition_keys, s.keys),
               &state);
    if (partitions == 1) {
        finish_row(&a, &state, row, out);
        return;
    }
    __global float *to = partial + (row * partitions + p) * (DV + 2);
    for (int i = 0; i < DV; i++)
        to[i] = state.o[i];
    to[DV] = state.m;
    to[DV + 1] = state.l;
}
