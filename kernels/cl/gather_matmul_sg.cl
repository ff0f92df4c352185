/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[s][t][n] = sum_k a[min(s, S - 1)][t][k] w[ids[t][s]][n][k] (+ bias[ids[t][s]][n])
 *
 * A sub-group computes ROWS neighbouring n of one (t, s), K across its lanes. Global size
 * {N / ROWS rounded up * SG, T, slots}. An id that no expert has gives zeros.
 */
#include "sub_group_gemv.h"

#ifndef IDS
#define IDS i32 /* type of ids */
#endif

SUB_GROUP_SIZE __kernel void
gather_matmul_sg(WEIGHT_PARAMETERS(w), __global const STORAGE(SRC) * a,
                 __global const STORAGE(IDS) * ids, __global const float *bias,
                 __global STORAGE(DST) * out, uint experts, uint n_count, uint k_count,
                 uint a_slots)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const ulong first = sub_group_index() * ROWS;
    const ulong t = get_group_id(1), s = get_global_id(2);
    const ulong t_count = get_global_size(1), slots = get_global_size(2);
    const uint n = (uint)first + get_sub_group_local_id();
    const long e = LOAD(IDS, ids, t * slots + s);
    float total = 0.0f;
    if (first >= n_count)
        return;
    if (e >= 0 && e < experts) {
        const ulong from = min(s, (ulong)a_slots - 1) * t_count + t;
        float sum[ROWS];
        rows_dot(&w, stored_row(&w, e, first), stored_row(&w, e, n_count - 1),
                 a + from * k_count, sum);
        total = lane_total(sum);
        if (bias)
            total += bias[(ulong)e * n_count + min(n, n_count - 1)];
    }
    if (get_sub_group_local_id() < ROWS && n < n_count)
        STORE(DST, out, (s * t_count + t) * n_count + n, total);
}
