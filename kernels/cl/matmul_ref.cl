/* SPDX-License-Identifier: Apache-2.0
 *
 *     c[batch][m][n] = sum_k a[batch][m][k] b[batch][k][n]
 *
 * Both operands are activations. Element (m, k) of a lies at
 * a_at + a_batch * batch + a_m * m + a_k * k, so that strides can express transposition and
 * repeated batches; b likewise. A work-item computes one element; global size {N, M, batch}.
 */
#include "types.h"

#ifndef A
#define A f32
#endif
#ifndef B
#define B f32
#endif
#ifndef C
#define C f32
#endif

__kernel void
matmul_ref(__global const STORAGE(A) * a, __global const STORAGE(B) * b,
           __global STORAGE(C) * c, ulong a_at, ulong b_at, ulong c_at, ulong a_batch,
           ulong a_m, ulong a_k, ulong b_batch, ulong b_k, ulong b_n, ulong k_count)
{
    const ulong n = get_global_id(0), m = get_global_id(1), batch = get_global_id(2);
    const ulong n_count = get_global_size(0), m_count = get_global_size(1);
    float sum = 0;
    for (ulong k = 0; k < k_count; k++)
        sum += LOAD(A, a, a_at + a_batch * batch + a_m * m + a_k * k) *
               LOAD(B, b, b_at + b_batch * batch + b_k * k + b_n * n);
    STORE(C, c, c_at + (batch * m_count + m) * n_count + n, sum);
}
