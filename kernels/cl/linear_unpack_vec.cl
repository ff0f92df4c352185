/* SPDX-License-Identifier: Apache-2.0
 *
 * Unpacks rows of a weight to plain numbers, for matrix products of a library on the host (oneDNN's
 * CPU engine):
 *
 *     out[n][k] = (q[first + n][k] - zp) * scale
 *
 * With GROUP 0 the rows are floats, also those of activations and results, and are only converted.
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

/* Returns weights k … k + 15 of a row. */
static inline float16
sixteen(const struct weight *w, ulong row, uint k)
{
#if BLOCKS
    return weights_at(w, row, k);
#elif !GROUP
    return FLOATS(WEI, row_bytes(w, row) + (ulong)k * SIZE(WEI));
#else
    const ulong i = row_begin(w, row) + k;
    const uint g = k / GROUP;
#if PLANES == 8
    const uchar8 pairs = vload8(0, w->data + i / 2);
    uchar16 q;
    q.even = pairs & (uchar8)15;
    q.odd = pairs >> (uchar8)4;
    q ^= (uchar16)OFFSET;
#else
    const uchar16 q = vload16(0, w->data + i) ^ (uchar16)OFFSET;
#endif
    return (convert_float16(q) - (weight_zero_point(w, row, g) + OFFSET)) *
           weight_scale(w, row, g);
#endif
}

__kernel void
linear_unpack_vec(WEIGHT_PARAMETERS(w), __global STORAGE(OUT) * out, uint first,
                  uint k_count)
{
    const struct weight w = WEIGHT(w, k_count, 0);
    const ulong item = get_global_id(0), row = stored_row(&w, 0, first + (uint)item);
#if BLOCKS
    const uint group = k_count;
    const bool even = true;
#else
    const uint group = group_size(&w);
    const bool even = row_begin(&w, row) % 2 == 0;
#endif
    out += item * k_count;
    for (uint k = 0; k < k_count;) {
        const uint end = k / group * group + group;
        const bool whole = even && k % 2 == 0;
        for (; whole && k + 16 <= end; k += 16)
            STORE16(OUT, out, k, sixteen(&w, row, k));
        for (; k < end; k++)
            STORE(OUT, out, k, weight_at(&w, row, k));
    }
}
