/* SPDX-License-Identifier: Apache-2.0
 *
 * One weight as its bytes say, element by element:
 *
 *     w[n][k] = (q[n][k] - zp[n][k / GROUP]) * scale[n][k / GROUP]
 *
 * Rows count through the experts (n = e * N + row). Bytes lie at any address, odd ones too,
 * so that everything is read through uchar. The format comes from the host:
 *
 *   WEI        u4 i4 u8 i8 f16 bf16 f32
 *   GROUP      k that share a scale; 0: not quantised
 *   SCALE      f16 bf16 f32
 *   HAS_ZP     0: symmetric; else ZP (u4 i4 u8 i8 f16 bf16 f32) is the zero points' type
 *   ZP_SCALAR  1: one zero point for the whole weight
 *   GROUP_MAJOR 1: scales and zero points are [e][k / GROUP][n] instead of [e][n][k / GROUP];
 *              then SCALE_ROWS is N where it is known, and ONE_EXPERT 1 where E is 1
 */
#include "types.h"

#ifndef WEI
#define WEI   u4
#define GROUP 128
#endif
#ifndef GROUP
#define GROUP 0
#endif
#ifndef SCALE
#define SCALE f16
#endif
#ifndef HAS_ZP
#define HAS_ZP 0
#endif
#ifndef ZP
#define ZP u4
#endif
#ifndef ZP_SCALAR
#define ZP_SCALAR 0
#endif
#ifndef GROUP_MAJOR
#define GROUP_MAJOR 0
#endif
#ifndef SCALE_ROWS
#define SCALE_ROWS rows /* by an argument: a division that takes long */
#endif
#ifndef ONE_EXPERT
#define ONE_EXPERT 0
#endif

static inline float
half_bits(ushort bits)
{
    return vload_half(0, (const half *)&bits);
}

static inline float
bytes_u4(__global const uchar *p, ulong i)
{
    return (float)((p[i >> 1] >> (4 * (i & 1))) & 15);
}

static inline float
bytes_i4(__global const uchar *p, ulong i)
{
    return (float)((((p[i >> 1] >> (4 * (i & 1))) & 15) ^ 8) - 8);
}

static inline float
bytes_u8(__global const uchar *p, ulong i)
{
    return (float)p[i];
}

static inline float
bytes_i8(__global const uchar *p, ulong i)
{
    return (float)as_char(p[i]);
}

static inline float
bytes_f16(__global const uchar *p, ulong i)
{
    return half_bits(as_ushort(vload2(i, p)));
}

static inline float
bytes_bf16(__global const uchar *p, ulong i)
{
    return as_float((uint)as_ushort(vload2(i, p)) << 16);
}

static inline float
bytes_f32(__global const uchar *p, ulong i)
{
    return as_float(vload4(i, p));
}

/* Element i of packed bytes of type T. */
#define BYTES(T, p, i) PASTE(bytes_, T)(p, i)

/* Where the scale of group g of row n lies; `rows` is N of one expert. */
static inline ulong
scale_index(ulong n, uint g, uint rows, uint groups)
{
#if GROUP_MAJOR
    const uint e = ONE_EXPERT ? 0 : (uint)n / SCALE_ROWS;
    return ((ulong)e * groups + g) * rows + ((uint)n - e * rows);
#else
    return n * groups + g;
#endif
}

static inline float
weight_scale(__global const uchar *scale, ulong n, uint g, uint rows, uint groups)
{
#if GROUP
    return BYTES(SCALE, scale, scale_index(n, g, rows, groups));
#else
    return 1.0f;
#endif
}

static inline float
weight_zero_point(__global const uchar *zp, ulong n, uint g, uint rows, uint groups)
{
#if !HAS_ZP
    return 0.0f;
#elif ZP_SCALAR
    return BYTES(ZP, zp, 0);
#else
    return BYTES(ZP, zp, scale_index(n, g, rows, groups));
#endif
}

/* The stored value, before zero point and scale; k_count is K. */
static inline float
weight_raw(__global const uchar *data, ulong n, uint k, uint k_count)
{
    return BYTES(WEI, data, n * k_count + k);
}

/* k that share a scale, and how many such groups a row has. */
static inline uint
weight_group(uint k_count)
{
    return GROUP ? GROUP : k_count;
}
