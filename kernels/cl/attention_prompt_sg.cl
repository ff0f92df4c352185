/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[b,t,h,:] = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * A sub-group makes a block of QUERY_ROWS rows that share a head of K and V; the blocks of a
 * work-group are neighbours and read the same keys at about the same time.
 */
#include "sub_group_attention.h"

SUB_GROUP_SIZE __kernel void
attention_prompt_sg(ATTENTION_PARAMETERS, __global STORAGE(SRC) * out, int batch)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    struct query_rows r;
    begin_rows(&a, &r, sub_group_index());
    if (r.b >= batch)
        return;
    attend(&a, &r, 0, (int)a.keys);
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        const ulong to = row_index(&a, &r, i) * DV;
        float l = r.l[i], keep = 1.0f;
        if (sinks) {
            const float sink = sinks[row_head(&r, i)], m = fmax(r.m[i], sink);
            keep = exp(r.m[i] - m);
            l = l * keep + exp(sink - m);
        }
        const float norm = l > 0.0f ? keep / l : 0.0f;
        if (r.first + i >= r.n)
            continue;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const uint d = c * SG + get_sub_group_local_id();
            if (d < DV)
                STORE(SRC, out, to + d, r.o[i][c] * norm);
        }
    }
}
