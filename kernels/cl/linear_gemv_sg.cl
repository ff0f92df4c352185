/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n])
 *
 * Few tokens. A sub-group computes ROWS neighbouring n of one token, K across its lanes; the
 * weights are read once a token. Global size {N / ROWS rounded up * SG, T}.
 */
#include "sub_group_gemv.h"

#ifndef DST
#define DST f32 /* element of y */
#endif

SUB_GROUP_SIZE __kernel void
linear_gemv_sg(__global const uchar *data, __global const uchar *scale,
               __global const uchar *zp, __global const STORAGE(SRC) * x,
               __global const float *bias, __global STORAGE(DST) * y, uint n_count,
               uint k_count)
{
    const ulong first = sub_group_index() * ROWS, t = get_global_id(1);
    const uint n = (uint)first + get_sub_group_local_id();
    float sum[ROWS];
    if (first >= n_count)
        return;
    rows_dot(data, scale, zp, first, 1, n_count - 1, n_count, k_count, x + t * k_count,
             sum);
    const float total = lane_total(sum);
    if (get_sub_group_local_id() < ROWS && n < n_count)
        STORE(DST, y, t * n_count + n, total + (bias ? bias[n] : 0.0f));
}
