/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of weights times one activation row, in vectors of 16 lanes:
 *
 *     sum_k w[n][k] x[k] = sum_g scale[g] (sum_{k in g} q[k] x[k] - zp[g] sum_{k in g} x[k])
 *
 * x is in planes (prepared.h). Each plane is scaled down by the position of its bits in the word,
 * so that decoding a weight is only a mask and a conversion: (word & 0xf0) is 16 q. xs has the sums
 * of x of the groups, so that zero points take a few operations a row.
 */
#include "planes.h"

/* Bytes from the address that is read to the one that is prefetched: far enough for the latency of
 * memory. (prefetch() of OpenCL does nothing on PoCL.) */
enum { PREFETCH_BYTES = 2048 };
static inline void
prefetch_ahead(__global const uchar *p)
{
#if defined(__has_builtin) && __has_builtin(__builtin_prefetch)
    __builtin_prefetch((const void *)(p + PREFETCH_BYTES), 0, 3);
#else
    prefetch(p + PREFETCH_BYTES, 64);
#endif
}

#if GROUP
#define TERM(mask, j) convert_float16(as_int16(w &mask)) * vload16(j, x)

/* Returns the sum over the planes of one block, lane by lane. */
static inline float16
block_dot(uint16 w, __global const float *x)
{
#if PLANES == 8
    float16 a = TERM(0xfu, 0), b = TERM(0xf0u, 1);
    a += TERM(0xf00u, 2);
    b += TERM(0xf000u, 3);
    a += TERM(0xf0000u, 4);
    b += TERM(0xf00000u, 5);
    a += TERM(0xf000000u, 6);
    b += convert_float16(as_int16(w >> 28u)) * vload16(7, x);
#else
    float16 a = TERM(0xffu, 0), b = TERM(0xff00u, 1);
    a += TERM(0xff0000u, 2);
    b += convert_float16(as_int16(w >> 24u)) * vload16(3, x);
#endif
    return a + b;
}

static inline float
one_zero_point(__global const uchar *zp, ulong i)
{
#if !HAS_ZP
    return 0.0f;
#else
    return BYTES(ZP, zp, ZP_SCALAR ? 0 : i);
#endif
}

/* Returns zero points i ... i + 15 of the row-major array. */
static inline float16
points_one_by_one(__global const uchar *zp, ulong i)
{
    float z[16];
    for (uint j = 0; j < 16; j++)
        z[j] = one_zero_point(zp, i + j);
    return vload16(0, z);
}

static inline float16
points_u4(__global const uchar *zp, ulong i)
{
    if (i & 1)
        return points_one_by_one(zp, i);
    const uchar8 pairs = vload8(0, zp + i / 2);
    uchar16 z;
    z.even = pairs & (uchar8)15;
    z.odd = pairs >> (uchar8)4;
    return convert_float16(z);
}

static inline float16
points_u8(__global const uchar *zp, ulong i)
{
    return convert_float16(vload16(0, zp + i));
}

#define points_i4   points_one_by_one
#define points_i8   points_one_by_one
#define points_f16  points_one_by_one
#define points_bf16 points_one_by_one
#define points_f32  points_one_by_one

static inline float16
zero_points(__global const uchar *zp, ulong i)
{
#if !HAS_ZP
    return 0.0f;
#elif ZP_SCALAR
    return one_zero_point(zp, 0);
#else
    return PASTE(points_, ZP)(zp, i);
#endif
}

/* Constants of up to 16 neighbouring groups: their products are multiplied by `scale`, their sums
 * of x by `zero`. The first group is at index `skip`. */
struct factors {
    float scale[16], zero[16];
    uint skip;
};

/* Loads the constants of n groups from group `first` on with one conversion of 16. For fewer groups
 * it reads earlier ones, too, so that nothing behind the row is read. */
static inline void
load_factors(__global const uchar *scale, __global const uchar *zp, ulong first, uint n,
             struct factors *f)
{
    const ulong end = first + n;
    if (end < 16) {
        f->skip = 0;
        for (uint i = 0; i < n; i++) {
            f->scale[i] = BYTES(SCALE, scale, first + i);
            f->zero[i] = f->scale[i] * (one_zero_point(zp, first + i) + OFFSET);
        }
        return;
    }
    const float16 s = FLOATS(SCALE, scale + (end - 16) * SIZE(SCALE));
    vstore16(s, 0, f->scale);
    vstore16(s * (zero_points(zp, end - 16) + OFFSET), 0, f->zero);
    f->skip = 16 - n;
}

/* Returns what the zero points of n groups subtract; the lanes must be added up. Up to `skip`
 * floats before xs are read, too, and ignored. */
static inline float16
zero_term(const struct factors *f, uint n, __global const float *xs)
{
    float16 term = 0;
#if HAS_ZP || OFFSET
    if (f->skip + n == 16) {
        const int16 lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        term = vload16(0, f->zero) * vload16(0, xs - f->skip);
        return as_float16(as_int16(term) & (lanes >= (int)f->skip));
    }
    for (uint g = 0; g < n; g++)
        term.s0 += f->zero[f->skip + g] * xs[g];
#endif
    return term;
}

#if GROUP % BLOCK == 0
/* Returns the products of `groups` whole groups, scaled. */
static inline float16
groups_dot(__global const uchar *row, uint groups, const float *scale,
           __global const float *x)
{
    float16 sum = 0;
    for (uint g = 0; g < groups; g++) {
        float16 dot = 0;
#pragma unroll 4
        for (uint i = 0; i < GROUP / BLOCK; i++, row += 64, x += BLOCK) {
            prefetch_ahead(row);
            dot += block_dot(((__global const loose_uint16 *)row)->v ^ FLIP, x);
        }
        sum += dot * scale[g];
    }
    return sum;
}
#elif BLOCK % GROUP == 0
/* The same if a block has several groups; the row's last block may be incomplete. */
static inline float16
groups_dot(__global const uchar *row, uint groups, const float *scale,
           __global const float *x)
{
    float16 sum = 0;
    for (uint g = 0, b = 0; g < groups; g += BLOCK / GROUP, b++) {
        float lanes[16];
#pragma unroll
        for (uint i = 0; i < 16; i++)
            lanes[i] = scale[min(g + i * PLANES / GROUP, groups - 1)];
        prefetch_ahead(row + b * 64);
        sum += block_dot(block_words(row, b, groups * GROUP), x + b * BLOCK) *
               vload16(0, lanes);
    }
    return sum;
}
#endif

/* Returns the product of row n with x, spread over 16 lanes that the caller adds up (sum16). */
static inline float16
row_dot(const struct weight *w, ulong n, __global const float *x,
        __global const float *xs)
{
    const uint groups = group_count(w);
    const ulong first_group = row_begin(w, n) / GROUP;
    __global const uchar *row = row_bytes(w, n);
    float16 sum = 0;
    for (uint first = 0; first < groups; first += 16) {
        const uint count = min(groups - first, 16u);
        struct factors f;
        load_factors(w->scale, w->zp, first_group + first, count, &f);
        sum -= zero_term(&f, count, xs + first);
#if GROUP % BLOCK == 0 || BLOCK % GROUP == 0
        const ulong k = (ulong)first * GROUP;
        sum += groups_dot(row + k / PLANES * 4, count, f.scale + f.skip, x + k);
#endif
    }
#if GROUP % BLOCK != 0 && BLOCK % GROUP != 0
    for (uint b = 0; b * BLOCK < w->k_count; b++)
        sum += block_dot(block_words(row, b, w->k_count), x + b * BLOCK) *
               block_scales(w, n, b);
#endif
    return sum;
}
#elif BLOCKS
static inline float16
row_dot(const struct weight *w, ulong n, __global const float *x,
        __global const float *xs)
{
    float16 a = 0, b = 0;
    uint k = 0;
    for (; k + 32 <= w->k_count; k += 32) {
        a += weights_at(w, n, k) * vload16(0, x + k);
        b += weights_at(w, n, k + 16) * vload16(0, x + k + 16);
    }
    if (k < w->k_count)
        a += weights_at(w, n, k) * vload16(0, x + k);
    return a + b;
}
#else
static inline float16
row_dot(const struct weight *w, ulong n, __global const float *x,
        __global const float *xs)
{
    __global const uchar *row = row_bytes(w, n);
    float16 a = 0, b = 0;
    uint k = 0;
    for (; k + 32 <= w->k_count; k += 32) {
        a += FLOATS(WEI, row + k * SIZE(WEI)) * vload16(0, x + k);
        b += FLOATS(WEI, row + (k + 16) * SIZE(WEI)) * vload16(0, x + k + 16);
    }
    for (; k < w->k_count; k++)
        a.s0 += BYTES(WEI, row, k) * x[k];
    return a + b;
}
#endif
