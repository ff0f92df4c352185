/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the limit of f32 multiply-adds, for CPU devices: 16 sums of 16 lanes in registers.
 */
#define SUMS 16

__kernel void
limit_multiply_vec(__global float *out, uint steps)
{
    float16 sum[SUMS];
    for (uint i = 0; i < SUMS; i++)
        sum[i] = (float)(i + get_global_id(0));
    const float16 a = 0.999f, b = 0.001f;
    for (uint n = 0; n < steps; n++) {
#pragma unroll
        for (uint i = 0; i < SUMS; i++)
            sum[i] = fma(sum[i], a, b);
    }
    for (uint i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    vstore16(sum[0], get_global_id(0), out);
}
