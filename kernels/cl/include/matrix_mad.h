/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of small matrices by a sub-group: 8 x 16 times 16 x SG, of halves, with sums in float.
 *
 *     c[row][column] + sum_s a[row][s] b[s][column]              16 slots s
 *
 *   a  each component is a row. Lane s has slot s (SG 16), or lane l has slots 2l and 2l + 1, the
 *      first in the low half of a word (SG 8)
 *   b  each lane is a column; component c has slots 2c and 2c + 1, the first in its low half
 *   c  each component is a row, each lane a column
 *
 *   SG             8 or 16: the smallest sub-group of a chip that has matrix engines
 *   MATRIX_ENGINE  1: matrix engines multiply; 0: shuffles and products with the same result, to
 *                  test on other devices how data moves through the lanes
 *
 * Type `slots`: a lane's part of a row of a: the bits of one half or two.
 */
#include "sub_group.h"

#ifndef MATRIX_ENGINE
#define MATRIX_ENGINE 0
#endif

#if SG == 8
typedef uint slots;
typedef int row_a;
typedef int8 matrix_a;
#elif SG == 16
typedef ushort slots;
typedef short row_a;
typedef short8 matrix_a;
#else
#error "matrix engines take sub-groups of 8 or 16"
#endif

/* Stands before loops around products and exchanges between lanes. Emulated, these are long code,
 * so that loops are not unrolled. */
#if MATRIX_ENGINE
#define UNROLL_PRODUCTS _Pragma("unroll")
#else
#define UNROLL_PRODUCTS _Pragma("unroll 1")
#endif

#if MATRIX_ENGINE
#ifndef cl_intel_subgroup_matrix_multiply_accumulate /* the offline compiler knows the function, \
                                                        not its name */
float8 __attribute__((overloadable))
intel_sub_group_f16_f16_matrix_mad_k16(matrix_a a, int8 b, float8 c);
#endif

static inline float8
matrix_mad(matrix_a a, int8 b, float8 c)
{
    return intel_sub_group_f16_f16_matrix_mad_k16(a, b, c);
}
#else
/* Returns slots 2c and 2c + 1 of a row of a. */
static inline float2
two_slots(row_a row, uint c)
{
#if SG == 8
    return halves((uint)intel_sub_group_shuffle(row, c));
#else
    const uint word = (ushort)row;
    return halves(intel_sub_group_shuffle(word, 2 * c) |
                  intel_sub_group_shuffle(word, 2 * c + 1) << 16);
#endif
}

static inline float8
matrix_mad(matrix_a a, int8 b, float8 c)
{
    row_a rows[8];
    int columns[8];
    float sum[8];
    vstore8(a, 0, rows);
    vstore8(b, 0, columns);
    vstore8(c, 0, sum);
#pragma unroll 1
    for (uint i = 0; i < 64; i++) {
        const float2 x = two_slots(rows[i / 8], i % 8);
        const float2 y = halves((uint)columns[i % 8]);
        sum[i / 8] += x.x * y.x + x.y * y.y;
    }
    return vload8(0, sum);
}
#endif
