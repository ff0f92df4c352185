/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of few tokens against one partition of the keys, on matrix engines (matrix_attention.h); the
 * complete result where there is one partition only (DECODE_PARAMETERS). The query heads that share
 * a head of K and V are rows of one sub-group, so that the cache is read once for all of them.
 * Global size: that of attention_prompt_dpas times the partitions, which are innermost.
 */
#include "matrix_attention.h"

static inline void
write_partials(const struct query *r, const struct sums *sums, int partitions,
               __global float *partial)
{
    __global float *to = partial + r->row * partitions * (DV + 2);
    if (r->repeats)
        return;
#pragma unroll
    for (uint i = 0; i < VALUE_BLOCKS; i++) {
        const uint d = r->first_value + i * 16;
        float16 values;
        values.even = sums->o[i][0];
        values.odd = sums->o[i][1];
        if (d < DV)
            vstore16(values, 0, to + d);
    }
    if (r->first_value == 0) {
        to[DV] = sums->m;
        to[DV + 1] = sums->l;
    }
}

SUB_GROUP_SIZE __kernel void
attention_decode_dpas(ATTENTION_PARAMETERS, DECODE_PARAMETERS)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const uint unit = sub_group_index(), p = unit % (uint)partitions;
    struct query r;
    struct sums sums;
    if (!find_rows(&a, unit / (uint)partitions, &r))
        return;
    const int first = first_seen(&a, &r.s, 0) + (int)p * partition_keys;
    limit_keys(&r, first, first + partition_keys);
    clear_sums(&sums);
    attend(&a, &r, &sums);
    if (partitions == 1)
        finish_rows(&a, &r, &sums, out);
    else
        write_partials(&r, &sums, partitions, partial + p * (DV + 2));
}
