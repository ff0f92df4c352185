/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a weight (or of activations: GROUP 0) as plain numbers, for a host library.
 *
 *     out[n][k] = (q[first + n][k] - zp) * scale
 *
 * A work-item unpacks one row; global size {rows}, local size 1.
 */
#include "weights.h"

#ifndef OUT
#define OUT f32 /* f32, f16, or bf16 (rounded to nearest even) */
#endif

#define STORAGE_bf16        ushort
#define STORE_bf16(p, i, v) ((p)[i] = bf16_bits(v))

static inline ushort
bf16_bits(float v)
{
    const uint bits = as_uint(v);
    if (isnan(v))
        return 0x7fc0;
    return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

__kernel void
linear_unpack_ref(__global const uchar *data, __global const uchar *scale,
                  __global const uchar *zp, __global STORAGE(OUT) * out, uint first,
                  uint n_count, uint k_count)
{
    const ulong row = get_global_id(0), n = first + row;
    const uint group = weight_group(k_count), groups = k_count / group;
    for (uint g = 0; g < groups; g++) {
        const float s = weight_scale(scale, n, g, n_count, groups);
        const float zero = weight_zero_point(zp, n, g, n_count, groups);
        for (uint k = g * group; k < (g + 1) * group; k++)
            STORE(OUT, out, row * k_count + k,
                  (weight_raw(data, n, k, k_count) - zero) * s);
    }
}
