/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n])
 *
 * A work-group of ITEMS makes ROWS elements of one token; groups {N / ROWS, T}. Every weight
 * is read once a token, so that few tokens are best.
 */
#include "row_dots.h"

#ifndef DST
#define DST f32 /* element of y */
#endif

__kernel void
linear_gemv_gen(__global const uchar *data, __global const uchar *scale,
                __global const uchar *zp, __global const STORAGE(SRC) *x,
                __global const float *bias, __global STORAGE(DST) *y, uint n_count,
                uint k_count)
{
    __local float chunk[CHUNK_FLOATS], parts[ROWS * ITEMS];
    const struct weight weight = {data, scale, zp, n_count, k_count};
    const uint row = (uint)get_group_id(0) * ROWS, me = get_local_id(0);
    const ulong t = get_group_id(1);
    float sum[ROWS];
    for (uint r = 0; r < ROWS; r++)
        sum[r] = 0.0f;
    for (uint k = 0; k < k_count; k += CHUNK) {
        stage_chunk(chunk, x + t * k_count, k, k_count);
        add_rows(&weight, row, n_count, k, chunk, 1.0f, sum);
    }
    group_sums(parts, sum, ROWS);
    for (uint r = 0; r < ROWS; r++) {
        if (me == r && row + r < n_count)
            STORE(DST, y, t * n_count + row + r, sum[r] + (bias ? bias[row + r] : 0.0f));
    }
}
