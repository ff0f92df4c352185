/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few tokens on matrix engines (matrix_attention.h). A sub-group computes one
 * partition of the keys, and stores a partial result, or the complete result if there is only one
 * partition (DECODE_PARAMETERS). The query heads that share a head of K and V are rows of one
 * sub-group, so that the cache is read once for all of them. Global size: SG lanes for each part of
 * the values of a tile of 8 rows, times the heads of K and V, times the partitions, which are
 * innermost.
 */
#define ROW_BLOCKS 1
#define KEYS       32
#include "matrix_attention.h"

static inline void
write_partials(const struct attention *a, const struct query *r, const struct sums *sums,
               int partitions, __global float *partial)
{
    const uint lane = get_sub_group_local_id();
    UNROLL_PRODUCTS
    for (int i = 0; i < TILE_ROWS; i++) {
        __global float *to = partial + row_index(r, i) * partitions * (DV + 2);
        float y[VALUE_CHUNKS];
        const float l = take_row(sums, i, y);
#pragma unroll
        for (uint c = 0; c < VALUE_CHUNKS; c++) {
            const uint d = r->first_value + c * SG + lane;
            if (i < r->n && d < DV)
                to[d] = y[c];
        }
        if (i < r->n && r->first_value == 0 && lane == 0) {
            to[DV] = l == 0.0f ? -INFINITY : sums->m[i] * a->scale;
            to[DV + 1] = l;
        }
    }
}

SUB_GROUP_SIZE __kernel void
attention_decode_dpas(ATTENTION_PARAMETERS, DECODE_PARAMETERS)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const uint unit = sub_group_index(), p = unit % (uint)partitions;
    LOCAL_QUERIES;
    struct query r;
    struct sums sums;
    if (!find_rows(&a, unit / (uint)partitions, queries, &r))
        return;
    const int first = first_seen(&a, &r.s, 0) + (int)p * partition_keys;
    limit_keys(&r, first, first + partition_keys);
    clear_sums(&sums);
    attend(&a, &r, &sums);
    if (partitions == 1)
        finish_rows(&a, &r, &sums, out);
    else
        write_partials(&a, &r, &sums, partitions, partial + p * (DV + 2));
}
