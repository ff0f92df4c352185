/* SPDX-License-Identifier: Apache-2.0
 *
 * One partition of the keys for a block of rows: partial[row][p] = { o[DV], m, l }; see
 * attention_decode_ref. A sub-group makes one block of QUERY_ROWS rows of one partition.
 */
#include "sub_group_attention.h"

SUB_GROUP_SIZE __kernel void
attention_decode_sg(ATTENTION_PARAMETERS, __global float *partial, int batch,
                    long first_key, long partition_keys, int partitions)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const uint unit = sub_group_index(), p = unit % (uint)partitions;
    const long first = first_key + p * partition_keys;
    struct query_rows r;
    begin_rows(&a, &r, unit / (uint)partitions);
    if (r.b >= batch)
        return;
    attend(&a, &r, (int)first, (int)min(first + partition_keys, a.keys));
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        __global float *to = partial + (row_index(&a, &r, i) * partitions + p) * (DV + 2);
        const uint lane = get_sub_group_local_id();
        if (r.first + i >= r.n)
            continue;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (c * SG + lane < DV)
                to[c * SG + lane] = r.o[i][c];
        }
        if (lane == 0) {
            to[DV] = r.m[i];
            to[DV + 1] = r.l[i];
        }
    }
}
