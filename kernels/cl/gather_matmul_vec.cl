/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[s][t][n] = sum_k a[min(s, S - 1)][t][k] w[ids[t][s]][n][k] (+ bias[ids[t][s]][n])
 *
 * A work-item computes per_item neighbouring n of one (t, s); global size {N / per_item rounded
 * up, T, slots}, local size 1. The rows of a were prepared by linear_prepare_vec. An id that is
 * no expert's gives zeros.
 */
#include "gemv.h"

#ifndef DST
#define DST f32 /* element of out */
#endif
#ifndef IDS
#define IDS i32 /* element of ids */
#endif

__kernel void
gather_matmul_vec(__global const uchar *data, __global const uchar *scale,
                  __global const uchar *zp, __global const float *planes,
                  __global const float *sums, __global const STORAGE(IDS) * ids,
                  __global const float *bias, __global STORAGE(DST) * out, uint experts,
                  uint n_count, uint k_count, uint a_slots, uint per_item)
{
    const ulong t = get_global_id(1), s = get_global_id(2);
    const ulong t_count = get_global_size(1), slots = get_global_size(2);
    const uint padded = (k_count + BLOCK - 1) / BLOCK * BLOCK;
    const uint groups = k_count / weight_group(k_count);
    const ulong from = min(s, (ulong)a_slots - 1) * t_count + t;
    const long e = LOAD(IDS, ids, t * slots + s);
    const uint first = (uint)get_global_id(0) * per_item;
    const uint end = min(first + per_item, n_count);
    for (uint n = first; n < end; n++) {
        float sum = 0;
        if (e >= 0 && e < experts) {
            const ulong row = (ulong)e * n_count + n;
            sum = sum16(row_dot(data, scale, zp, row, k_count, planes + from * padded,
                                sums + from * groups)) +
                  (bias ? bias[row] : 0.0f);
        }
        STORE(DST, out, (s * t_count + t) * n_count + n, sum);
    }
}
