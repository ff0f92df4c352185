/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integers by a sub-group: n x 32 times 32 x SG, rows of signed bytes times columns of
 * 2, 4 or 8 bits as they are stored, sums in int.
 *
 *     c[row][column] + sum_s a[row][s] b[s][column]              32 slots s
 *
 *   a  a row a component (n is 2, 4 or 8). SG 16: slots 2l and 2l + 1 in lane l; SG 8: slots
 *      4l … 4l + 3; the first lowest
 *   b  a column a lane; the slots from the lowest bits of component 0 on
 *   c  a row a component, a column a lane
 *
 *   MATRIX_ENGINE  as for matrix_mad.h: 0 emulates
 *
 * mad_<type>(a, b, c): type u2, u4, i4, u8 or i8. Rows have types of their own size of sub-group:
 * an expression that promotes a short to int would find the function of the other size, which the
 * compiler then emulates without a word.
 */
#include "sub_group.h"

#ifndef MATRIX_ENGINE
#define MATRIX_ENGINE 0
#endif

#define LANE_SLOTS (32 / SG) /* slots of a row in a lane */

#if SG == 8
typedef int a_row;
typedef int2 a_rows2;
typedef int4 a_rows4;
typedef int8 a_rows8;
#elif SG == 16
typedef short a_row;
typedef short2 a_rows2;
typedef short4 a_rows4;
typedef short8 a_rows8;
#else
#error "matrix engines take sub-groups of 8 or 16"
#endif

#define OVERLOADED __attribute__((overloadable))

#if MATRIX_ENGINE
#define INTEGER_MAD(T, words, n, column)                                                 \
    int##n OVERLOADED intel_sub_group_i8_##T##_matrix_mad_k32(a_rows##n a, column b,     \
                                                              int##n c);                 \
    static inline int##n OVERLOADED mad_##T(a_rows##n a, uint##words b, int##n c)        \
    {                                                                                    \
        return intel_sub_group_i8_##T##_matrix_mad_k32(a, as_##column(b), c);            \
    }
#else
#define SLOT_u2(b, s) (int)(b[(s) / 16] >> (s) % 16 * 2 & 3)
#define SLOT_u4(b, s) (int)(b[(s) / 8] >> (s) % 8 * 4 & 15)
#define SLOT_i4(b, s) ((SLOT_u4(b, s) ^ 8) - 8)
#define SLOT_u8(b, s) (int)(b[(s) / 4] >> (s) % 4 * 8 & 255)
#define SLOT_i8(b, s) ((SLOT_u8(b, s) ^ 128) - 128)

/* Products of one row: the lanes' slots one after the other. */
#define INTEGER_MAD(T, words, n, column)                                                 \
    static inline int##n OVERLOADED mad_##T(a_rows##n a, uint##words b, int##n c)        \
    {                                                                                    \
        a_row rows[n];                                                                   \
        uint slots[words];                                                               \
        int sums[n];                                                                     \
        vstore##n(a, 0, rows);                                                           \
        vstore##words(b, 0, slots);                                                      \
        vstore##n(c, 0, sums);                                                           \
        _Pragma("unroll 1") for (uint i = 0; i < n * SG; i++)                            \
        {                                                                                \
            const uint row = i / SG, l = i % SG;                                         \
            const int four = intel_sub_group_shuffle((int)rows[row], l);                 \
            for (uint s = 0; s < LANE_SLOTS; s++)                                        \
                sums[row] +=                                                             \
                    (four << (24 - 8 * s) >> 24) * SLOT_##T(slots, l * LANE_SLOTS + s);  \
        }                                                                                \
        return vload##n(0, sums);                                                        \
    }
#endif

#define INTEGER_MADS(T, words, column)                                                   \
    INTEGER_MAD(T, words, 2, column)                                                     \
    INTEGER_MAD(T, words, 4, column)                                                     \
    INTEGER_MAD(T, words, 8, column)
INTEGER_MADS(u2, 2, uint2)
INTEGER_MADS(u4, 4, uint4)
INTEGER_MADS(i4, 4, int4)
INTEGER_MADS(u8, 8, uint8)
INTEGER_MADS(i8, 8, int8)
