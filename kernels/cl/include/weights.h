/* SPDX-License-Identifier: Apache-2.0
 *
 * One weight in its stored bytes. A kernel reads a view of it: K columns of some of the stored rows
 * (runtime/weight.h). Bytes may be at any address, odd ones too, so that everything is read through
 * uchar.
 *
 * A weight is elements, with scales and zero points in separate arrays:
 *
 *     w[n][k] = (q[n][k] - zp[n][k / GROUP]) * scale[n][k / GROUP]
 *
 *   WEI        u4 i4 u8 i8 f16 bf16 f32
 *   GROUP      k that share a scale; 0: not quantised
 *   SCALE      f16 bf16 f32
 *   HAS_ZP     0: symmetric; else ZP (u4 i4 u8 i8 f16 bf16 f32) is the zero points' type
 *   ZP_SCALAR  1: one zero point for the whole weight
 *   GROUP_MAJOR 1: scales and zero points are [e][k / GROUP][n] instead of [e][n][k / GROUP];
 *              then SCALE_ROWS is the stored N if it is a constant, and ONE_EXPERT 1 if E is 1
 *
 * or blocks with their scales inside (blocks.h):
 *
 *   FORMAT0    q4_0 …: format of weight 0 of the kernel; FORMAT1, FORMAT2: of weights 1 and 2
 *
 * or codes, elements that stand for numbers (codes.h):
 *
 *   CODES      nf4 f4e2m1 f8e4m3 f8e5m2 codebook; with FACTORS f16 bf16 f32, too
 *
 * BLOCKS is 1 for blocks and codes: they are read by weights_at, 16 columns at once. They may have
 * a factor for each stored expert in place of zero points:
 *
 *   FACTORS    1: some weight of the kernel has factors; the expert of a row is found by SCALE_ROWS
 *              or ONE_EXPERT, as for scales in group-major order
 *
 * Rows are numbered through all stored experts: stored_row.
 */
#include "nibbles.h"
#include "short_pairs.h"
#include "types.h"
#include "units.h"

#if defined(FORMAT0) || defined(CODES)
#define BLOCKS 1
#else
#define BLOCKS 0
#endif
#if !BLOCKS && !defined(WEI)
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
#define SCALE_ROWS w->view.z /* a kernel argument as the divisor makes a slow division */
#endif
#ifndef ONE_EXPERT
#define ONE_EXPERT 0
#endif
#ifndef FACTORS
#define FACTORS 0
#endif
#ifdef CODES
#define SCALE_GROUP CODE_GROUP
#else
#define SCALE_GROUP GROUP
#endif
#ifndef CODE_GROUP
#define CODE_GROUP 0
#endif

/* Converts the bits of four halves (half_bits: of one) to floats. PoCL's vload_half takes a dozen
 * integer instructions where the processor has one. */
static inline float4
half_bits4(ushort4 bits)
{
#ifdef __F16C__
    typedef short shorts __attribute__((vector_size(16)));
    typedef float floats __attribute__((vector_size(16)));
    const floats v =
        __builtin_ia32_vcvtph2ps(__builtin_astype((ushort8)(bits, (ushort4)0), shorts));
    return __builtin_astype(v, float4);
#else
    return vload_half4(0, (const half *)&bits);
#endif
}

static inline float
half_bits(ushort bits)
{
#ifdef __F16C__
    return half_bits4((ushort4)bits).x;
#else
    return vload_half(0, (const half *)&bits);
#endif
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

/* Small floats have the fields of a half, but fewer exponent bits: as bits of a half they are a
 * power of two below their value. f8e4m3 has NaN in place of its largest numbers. */
static inline float
bytes_f4e2m1(__global const uchar *p, ulong i)
{
    const uint q = p[i >> 1] >> (4 * (i & 1));
    return half_bits((ushort)((q & 7) << 9 | (q & 8) << 12)) * 0x1p14f;
}

static inline float
bytes_f8e4m3(__global const uchar *p, ulong i)
{
    const uint q = p[i];
    return (q & 127) == 127
               ? as_float(0x7fc00000u)
               : half_bits((ushort)((q & 127) << 7 | (q & 128) << 8)) * 256.0f;
}

static inline float
bytes_f8e5m2(__global const uchar *p, ulong i)
{
    return half_bits((ushort)(p[i] << 8));
}

/* An exponent: 2^(q - 127), which is subnormal for q = 0; 255 is NaN. */
static inline float
bytes_f8e8m0(__global const uchar *p, ulong i)
{
    const uint q = p[i];
    return as_float(q == 255 ? 0x7fc00000u : max(q << 23, 0x400000u));
}

/* Element i of packed elements of type T, as a float. */
#define BYTES(T, p, i) PASTE(bytes_, T)(p, i)

/* `view`: columns from one stored row to the next; the first column; rows from one stored expert to
 * the next; the first row. */
struct weight {
    __global const uchar *data, *scale, *zp;
    uint4 view;
    uint k_count; /* columns of the view */
    uint format;  /* blocks: 0 for FORMAT0, 1 for FORMAT1, 2 for FORMAT2 */
};

#define WEIGHT_PARAMETERS(name)                                                          \
    __global const uchar *name##_data, __global const uchar *name##_scale,               \
        __global const uchar *name##_zp, uint4 name##_view
#define WEIGHT(name, k_count, i)                                                         \
    ((struct weight){name##_data, name##_scale, name##_zp, name##_view, k_count, i})

/* Returns the index among all stored rows of row n of an expert. */
static inline ulong
stored_row(const struct weight *w, ulong expert, uint n)
{
    return w->view.w + expert * w->view.z + n;
}

/* Returns the factor of a stored row's expert; 1 without factors. */
static inline float
weight_factor(const struct weight *w, ulong row)
{
#if FACTORS
    return w->zp ? bytes_f32(w->zp, ONE_EXPERT ? 0 : (uint)row / SCALE_ROWS) : 1.0f;
#else
    return 1.0f;
#endif
}

#ifdef FORMAT0
#include "blocks.h"
#else
/* Returns the index of the first element of a row of the view among all stored elements. */
static inline ulong
row_begin(const struct weight *w, ulong row)
{
    return row * w->view.x + w->view.y;
}

/* Returns the columns that share a scale (all, for float weights); group_count, the groups of a
 * row. */
static inline uint
group_size(const struct weight *w)
{
    return GROUP ? GROUP : w->k_count;
}

static inline uint
group_count(const struct weight *w)
{
    return w->k_count / group_size(w);
}

/* Returns the index of the scale of group g of a row that begins with element `begin`. */
static inline ulong
scale_behind(const struct weight *w, ulong row, ulong begin, uint g)
{
#if !SCALE_GROUP
    return 0;
#elif GROUP_MAJOR
    const uint e = ONE_EXPERT ? 0 : (uint)row / SCALE_ROWS;
    const ulong groups = w->view.x / SCALE_GROUP;
    return (e * groups + w->view.y / SCALE_GROUP + g) * w->view.z +
           ((uint)row - e * w->view.z);
#else
    return begin / SCALE_GROUP + g;
#endif
}

static inline ulong
scale_index(const struct weight *w, ulong row, uint g)
{
    return scale_behind(w, row, row_begin(w, row), g);
}

static inline float
weight_scale(const struct weight *w, ulong row, uint g)
{
#if SCALE_GROUP
    return BYTES(SCALE, w->scale, scale_index(w, row, g));
#else
    return 1.0f;
#endif
}

#ifdef CODES
#include "codes.h"
#else
/* Returns zero point i of the array. */
static inline float
zero_point_at(const struct weight *w, ulong i)
{
#if !HAS_ZP
    return 0.0f;
#else
    return BYTES(ZP, w->zp, ZP_SCALAR ? 0 : i);
#endif
}

static inline float
weight_zero_point(const struct weight *w, ulong row, uint g)
{
    return zero_point_at(w, scale_index(w, row, g));
}

/* Returns weight k of a row. */
static inline float
weight_at(const struct weight *w, ulong row, uint k)
{
    const uint g = GROUP ? k / group_size(w) : 0;
    return (BYTES(WEI, w->data, row_begin(w, row) + k) - weight_zero_point(w, row, g)) *
           weight_scale(w, row, g);
}
#endif
#endif
