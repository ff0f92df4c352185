/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[s][t][n] = a[min(s, S-1)][t] . w[ids[t][s]][n] (+ bias[ids[t][s]][n])
 *
 * An id out of range gives zeros. A work-group of ITEMS computes ROWS elements; groups
 * {N / ROWS, T, slots}.
 */
#include "row_dots.h"

#ifndef IDS
#define IDS i32
#endif

__kernel void
gather_matmul_gen(WEIGHT_PARAMETERS(w), __global const STORAGE(SRC) *a,
                  __global const STORAGE(IDS) *ids, __global const float *bias,
                  __global STORAGE(DST) *out, uint experts, uint n_count, uint k_count,
                  uint a_slots)
{
    __local float chunk[CHUNK_FLOATS], parts[ROWS * ITEMS];
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint row = (uint)get_group_id(0) * ROWS, me = get_local_id(0);
    const ulong t = get_group_id(1), tokens = get_num_groups(1);
    const uint s = (uint)get_group_id(2), slots = (uint)get_num_groups(2);
    const long id = (long)LOAD(IDS, ids, t * slots + s);
    const bool known = id >= 0 && id < (long)experts;
    const ulong first = stored_row(&w, known ? id : 0, 0);
    float sum[ROWS];
    a += (min(s, a_slots - 1) * tokens + t) * k_count;
    for (uint r = 0; r < ROWS; r++)
        sum[r] = 0.0f;
    for (uint k = 0; known && k < k_count; k += CHUNK) {
        stage_chunk(chunk, a, k, k_count);
        add_rows(&w, first + row, first + n_count, k, chunk, 1.0f, sum);
    }
    group_sums(parts, sum, ROWS);
    for (uint r = 0; r < ROWS; r++) {
        if (me == r && row + r < n_count)
            STORE(DST, out, (s * tokens + t) * n_count + row + r,
                  sum[r] + (bias && known ? bias[id * n_count + row + r] : 0.0f));
    }
}
