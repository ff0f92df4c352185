/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[s][t][n] = sum_k a[min(s, S - 1)][t][k] w[ids[t][s]][n][k] (+ bias[ids[t][s]][n])
 *
 * A work-item computes per_item neighbouring n of one (t, s); global size
 * {N / per_item rounded up, T, slots}, local size 1. a is prepared rows (prepared.h). An id that no
 * expert has gives zeros.
 */
#include "gemv_rows.h"

#ifndef IDS
#define IDS i32 /* type of ids */
#endif

__kernel void
gather_matmul_vec(WEIGHT_PARAMETERS(w), __global const int *a,
                  __global const STORAGE(IDS) * ids,
                  __global const float *bias, __global STORAGE(DST) * out, uint experts,
                  uint n_count, uint k_count, uint a_slots, uint per_item)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const ulong t = get_global_id(1), s = get_global_id(2);
    const ulong t_count = get_global_size(1), slots = get_global_size(2);
    __global const int *row =
        x_row_at(a, min(s, (ulong)a_slots - 1) * t_count + t, k_count).x;
    const long e = LOAD(IDS, ids, t * slots + s);
    const uint first = (uint)get_global_id(0) * per_item;
    const uint end = min(first + per_item, n_count);
    for (uint n = first; n < end; n += ROWS_AT_ONCE) {
        const uint count = min(end - n, (uint)ROWS_AT_ONCE);
        float16 sum = 0;
        if (e >= 0 && e < experts) {
            products_of_rows(&w, stored_row(&w, e, n), count, row, 1, &sum);
            if (bias)
                sum += LOAD_SOME(f32, bias, (ulong)e * n_count + n, count);
        }
        STORE_SOME(DST, out, (s * t_count + t) * n_count + n, count, sum);
    }
}
