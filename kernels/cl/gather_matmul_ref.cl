/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[s][t][n] = sum_k a[min(s, S - 1)][t][k] w[ids[t][s]][n][k] (+ bias[ids[t][s]][n])
 *
 * A work-item computes one element; global size {N, T, slots}. An id that is no expert's gives
 * zeros.
 */
#include "weights.h"

#ifndef SRC
#define SRC f32 /* element of a */
#endif
#ifndef DST
#define DST f32 /* element of out */
#endif
#ifndef IDS
#define IDS i32 /* element of ids */
#endif

__kernel void
gather_matmul_ref(__global const uchar *data, __global const uchar *scale,
                  __global const uchar *zp, __global const STORAGE(SRC) * a,
                  __global const STORAGE(IDS) * ids, __global const float *bias,
                  __global STORAGE(DST) * out, uint experts, uint n_count, uint k_count,
                  uint a_slots)
{
    const uint n = (uint)get_global_id(0);
    const ulong t = get_global_id(1), s = get_global_id(2);
    const ulong t_count = get_global_size(1), slots = get_global_size(2);
    const uint group = weight_group(k_count), groups = k_count / group;
    const long e = LOAD(IDS, ids, t * slots + s);
    float sum = 0;
    if (e >= 0 && e < experts) {
        const ulong row = (ulong)e * n_count + n;
        const ulong from = (min(s, (ulong)a_slots - 1) * t_count + t) * k_count;
        sum = bias ? bias[row] : 0.0f;
        for (uint g = 0; g < groups; g++) {
            const float zero = weight_zero_point(zp, row, g, n_count, groups);
            float part = 0;
            for (uint k = g * group; k < (g + 1) * group; k++)
                part +=
                    (weight_raw(data, row, k, k_count) - zero) * LOAD(SRC, a, from + k);
            sum += part * weight_scale(scale, row, g, n_count, groups);
        }
    }
    STORE(DST, out, (s * t_count + t) * n_count + n, sum);
}
