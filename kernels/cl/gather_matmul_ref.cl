/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[s][t][n] = sum_k a[min(s, S - 1)][t][k] w[ids[t][s]][n][k] (+ bias[ids[t][s]][n])
 *
 * A work-item computes one element; global size {N, T, slots}. An id that no expert has gives
 * zeros.
 */
#include "weights.h"

#ifndef IDS
#define IDS i32 /* type of ids */
#endif

__kernel void
gather_matmul_ref(WEIGHT_PARAMETERS(w), __global const STORAGE(SRC) * a,
                  __global const STORAGE(IDS) * ids, __global const float *bias,
                  __global STORAGE(DST) * out, uint experts, uint n_count, uint k_count,
                  uint a_slots)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint n = (uint)get_global_id(0);
    const ulong t = get_global_id(1), s = get_global_id(2);
    const ulong t_count = get_global_size(1), slots = get_global_size(2);
    const long e = LOAD(IDS, ids, t * slots + s);
    float sum = 0;
    if (e >= 0 && e < experts) {
        const ulong row = stored_row(&w, e, n);
        const ulong from = (min(s, (ulong)a_slots - 1) * t_count + t) * k_count;
        sum = bias ? bias[(ulong)e * n_count + n] : 0.0f;
        for (uint k = 0; k < k_count; k++)
            sum += weight_at(&w, row, k) * LOAD(SRC, a, from + k);
    }
    STORE(DST, out, (s * t_count + t) * n_count + n, sum);
}
