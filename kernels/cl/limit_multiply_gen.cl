/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the limit of multiply-adds in REAL, for GPUs: each work-item has SUMS independent sums
 * in registers.
 */
#define SUMS 16

#if USE_HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define REAL half
#else
#define REAL float
#endif

__kernel void
limit_multiply_gen(__global float *out, uint steps)
{
    REAL sum[SUMS];
    for (uint i = 0; i < SUMS; i++)
        sum[i] = (REAL)(i + get_local_id(0));
    const REAL a = (REAL)0.999f, b = (REAL)0.001f;
    for (uint n = 0; n < steps; n++) {
#pragma unroll
        for (uint i = 0; i < SUMS; i++)
            sum[i] = fma(sum[i], a, b);
    }
    for (uint i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    out[get_global_id(0)] = (float)sum[0];
}
