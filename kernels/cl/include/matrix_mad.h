/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of small matrices by a sub-group: 8 x 16 times 16 x SG, halves, sums in float.
 *
 *     c[row][column] + sum_s a[row][s] b[s][column]              16 slots s
 *
 *   a  a row a component. SG 16: slot s in lane s; SG 8: slots 2l and 2l + 1 in lane l, the
 *      first in the low half of a word
 *   b  a column a lane; slots 2c and 2c + 1 in component c, the first in its low half
 *   c  a row a component, a column a lane
 *
 *   SG             8 or 16: the smallest sub-group of a chip that has matrix engines
 *   MATRIX_ENGINE  1: the engines do it; 0: shuffles and products with the same result, for
 *                  devices where the data's way through the lanes is to be tested
 *
 * `slots` is what a lane has of a row of a: one half or two, as bits.
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

/* Stands before loops around products and exchanges between lanes. Where these are emulated, that
 * is long code, which is not repeated. */
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
/* Slots 2c and 2c + 1 of a row of a. */
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
