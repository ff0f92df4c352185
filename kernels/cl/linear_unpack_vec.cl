/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a weight (or of activations: GROUP 0) as plain numbers, for a host library.
 *
 *     out[n][k] = (q[first + n][k] - zp) * scale
 *
 * A work-item unpacks one row; global size {rows}, local size 1.
 */
#include "planes.h"

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

static inline ushort16
bf16_bits16(float16 v)
{
    const uint16 bits = as_uint16(v);
    const uint16 rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
    return convert_ushort16(isnan(v) ? (uint16)0x7fc0 : rounded);
}
#define STORE16_bf16(p, i, v) vstore16(bf16_bits16(v), 0, (p) + (i))

/* Numbers i ... i + 15 as they are stored; i is even. */
static inline float16
stored_u4(__global const uchar *p, ulong i)
{
    const uchar8 pairs = vload8(0, p + i / 2);
    uchar16 q;
    q.even = pairs & (uchar8)15;
    q.odd = pairs >> (uchar8)4;
    return convert_float16(q);
}
#define stored_i4(p, i)                                                                  \
    (convert_float16(convert_uchar16(stored_u4(p, i)) ^ (uchar16)8) - 8.0f)
#define stored_u8(p, i)   convert_float16(vload16(0, (p) + (i)))
#define stored_i8(p, i)   convert_float16(as_char16(vload16(0, (p) + (i))))
#define stored_f16(p, i)  floats_f16((p) + (i)*2)
#define stored_bf16(p, i) floats_bf16((p) + (i)*2)
#define stored_f32(p, i)  floats_f32((p) + (i)*4)

__kernel void
linear_unpack_vec(__global const uchar *data, __global const uchar *scale,
                  __global const uchar *zp, __global STORAGE(OUT) * out, uint first,
                  uint n_count, uint k_count)
{
    const ulong row = get_global_id(0), n = first + row;
    const uint group = weight_group(k_count), groups = k_count / group;
    out += row * k_count;
    for (uint g = 0; g < groups; g++) {
        const float s = weight_scale(scale, n, g, n_count, groups);
        const float zero = weight_zero_point(zp, n, g, n_count, groups);
        const uint end = (g + 1) * group;
        uint k = g * group;
        if ((n * k_count + k) % 2 == 0)
            for (; k + 16 <= end; k += 16)
                STORE16(OUT, out, k,
                        (PASTE(stored_, WEI)(data, n * k_count + k) - zero) * s);
        for (; k < end; k++)
            STORE(OUT, out, k, (weight_raw(data, n, k, k_count) - zero) * s);
    }
}
