/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integers by a sub-group: n x 32 times 32 x SG, rows of signed bytes times columns of
 * 2, 4 or 8 bits as they are stored, sums in int.
 *
 *     c[row][column] + sum_s a[row][s] b[s][column]              32 slots s
 *
 *   a  each component is a row (n is 2 or 4). Lane l has slots 2l and 2l + 1 (SG 16), or
 *      4l … 4l + 3 (SG 8), the first in the lowest bits
 *   b  each lane is a column; its slots begin at the lowest bits of component 0
 *   c  each component is a row, each lane a column
 *
 *   MATRIX_ENGINE  as for matrix_mad.h: 0 emulates
 *   DP4A           1: no matrix engines; products of four bytes, a being broadcast lane by lane;
 *                  SG is 8
 *   DOT_PRODUCTS   1: the device has products of four bytes; 0 emulates them
 *
 * mad_<type>(a, b, c): type u2, u4, i4, u8 or i8. The type of rows depends on the sub-group size.
 * An expression that promotes a short to int would select the function for the other size, which
 * the compiler then emulates silently.
 */
#include "sub_group.h"

#ifndef MATRIX_ENGINE
#define MATRIX_ENGINE 0
#endif
#ifndef DP4A
#define DP4A 0
#endif
#ifndef DOT_PRODUCTS
#define DOT_PRODUCTS 0
#endif

#define LANE_SLOTS (32 / SG) /* slots of a row in each lane */

#if SG == 8
typedef int a_row;
typedef int2 a_rows2;
typedef int4 a_rows4;
#elif SG == 16
typedef short a_row;
typedef short2 a_rows2;
typedef short4 a_rows4;
#else
#error "matrix engines take sub-groups of 8 or 16"
#endif

#define OVERLOADED __attribute__((overloadable))

#if DP4A
#if SG != 8
#error "four slots a lane want sub-groups of 8"
#endif
#if DOT_PRODUCTS
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
#define DOT_u8(w, x, c) dot_acc_sat(as_uchar4(w), as_char4(x), c)
#define DOT_i8(w, x, c) dot_acc_sat(as_char4(w), as_char4(x), c)
#else
#define BYTE_OF(w, i)  ((int)((uint)(w) << (24 - 8 * (i))) >> 24)
#define UBYTE_OF(w, i) ((int)((w) >> 8 * (i)&255u))
#define DOT_i8(w, x, c)                                                                  \
    ((c) + BYTE_OF(w, 0) * BYTE_OF(x, 0) + BYTE_OF(w, 1) * BYTE_OF(x, 1) +               \
     BYTE_OF(w, 2) * BYTE_OF(x, 2) + BYTE_OF(w, 3) * BYTE_OF(x, 3))
#define DOT_u8(w, x, c)                                                                  \
    ((c) + UBYTE_OF(w, 0) * BYTE_OF(x, 0) + UBYTE_OF(w, 1) * BYTE_OF(x, 1) +             \
     UBYTE_OF(w, 2) * BYTE_OF(x, 2) + UBYTE_OF(w, 3) * BYTE_OF(x, 3))
#endif

/* Defines words_<type>: c plus the products of words first … end - 1 of b with two rows. */
#define BYTES_MAD(T)                                                                     \
    static inline int2 words_##T(a_rows2 a, uint8 b, int2 c, const uint first,           \
                                 const uint end)                                         \
    {                                                                                    \
        uint words[8];                                                                   \
        vstore8(b, 0, words);                                                            \
        _Pragma("unroll") for (uint l = first; l < end; l++)                             \
        {                                                                                \
            c.x = DOT_##T(words[l], intel_sub_group_shuffle(a.x, l), c.x);               \
            c.y = DOT_##T(words[l], intel_sub_group_shuffle(a.y, l), c.y);               \
        }                                                                                \
        return c;                                                                        \
    }
BYTES_MAD(u8)
BYTES_MAD(i8)

/* Defines nibbles_<type> for words first … end - 1 of b: adds the low nibbles of word l times lane
 * 2l of a to c.xy, the high nibbles, 16 times too large, times lane 2l + 1 to c.zw. Signed nibbles
 * are all 16 times too large, because their sign must be the sign of a byte. */
#define NIBBLES_MAD(T, dot, low)                                                         \
    static inline int4 nibbles_##T(a_rows2 a, uint4 b, int4 c, const uint first,         \
                                   const uint end)                                       \
    {                                                                                    \
        uint words[4];                                                                   \
        vstore4(b, 0, words);                                                            \
        _Pragma("unroll") for (uint l = first; l < end; l++)                             \
        {                                                                                \
            const uint w = words[l], high = w & 0xf0f0f0f0u;                             \
            c.x = dot(low, intel_sub_group_shuffle(a.x, 2 * l), c.x);                    \
            c.y = dot(low, intel_sub_group_shuffle(a.y, 2 * l), c.y);                    \
            c.z = dot(high, intel_sub_group_shuffle(a.x, 2 * l + 1), c.z);               \
            c.w = dot(high, intel_sub_group_shuffle(a.y, 2 * l + 1), c.w);               \
        }                                                                                \
        return c;                                                                        \
    }
NIBBLES_MAD(u4, DOT_u8, (w & 0x0f0f0f0fu))
NIBBLES_MAD(i4, DOT_i8, (w << 4 & 0xf0f0f0f0u))

/* Multiplies by bits: byte i of lane l of a times bit l + 8 i of b. */
static inline int2
mad_bits(a_rows2 a, uint b, int2 c)
{
#pragma unroll
    for (uint l = 0; l < 8; l++) {
        const uint bits = b >> l & 0x01010101u;
        c.x = DOT_u8(bits, intel_sub_group_shuffle(a.x, l), c.x);
        c.y = DOT_u8(bits, intel_sub_group_shuffle(a.y, l), c.y);
    }
    return c;
}
#elif MATRIX_ENGINE
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

/* Emulation: row by row, lane by lane. */
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

#if !DP4A
INTEGER_MAD(u2, 2, 2, uint2)
INTEGER_MAD(u4, 4, 2, uint4)
INTEGER_MAD(u4, 4, 4, uint4)
INTEGER_MAD(i4, 4, 2, int4)
INTEGER_MAD(i4, 4, 4, int4)
INTEGER_MAD(u8, 8, 2, uint8)
INTEGER_MAD(i8, 8, 2, int8)
INTEGER_MAD(i8, 8, 4, int8)

/* Multiplies by bits: the slots are the even bits of b, then the odd ones. */
static inline int2
mad_bits(a_rows2 a, uint b, int2 c)
{
    return mad_u2(a, (uint2)(b & 0x55555555u, b >> 1 & 0x55555555u), c);
}
#endif

/* Products of a step of 32 slots, for both kinds of instructions:
 *
 *     NIBBLES         one sum of all nibbles; TOGETHER completes it, TIMES_<type> times too large
 *     NIBBLES_APART   a sum of the low and one of the high nibbles; APART completes them
 *     NIBBLE_HALVES   a sum of the first and one of the last 16 nibbles
 *     BYTES_APART     a sum of the first and one of the last 16 bytes
 *     HIGH_NIBBLES    a sum of the high nibbles; a has zeros for the low ones
 *     FIRST_…         a has zeros for all words of b except the first
 *
 * apart_rows, made by ROWS_APART or ROW_HALVES: the row of high bytes and that of low bytes of x
 * for the low nibbles or the first 16 slots, then two rows for the others. */
#if DP4A
typedef int4 nibble_sum;
typedef a_rows2 apart_rows;
#define NIBBLES(T, a, b, c)       PASTE(nibbles_, T)(a, b, c, 0, 4)
#define NIBBLES_APART(T, a, b, c) PASTE(nibbles_, T)(a, b, c, 0, 4)
#define NIBBLE_HALVES(T, a, b)                                                           \
    (int4)(TOGETHER(T, PASTE(nibbles_, T)(a, b, (int4)0, 0, 2)),                         \
           TOGETHER(T, PASTE(nibbles_, T)(a, b, (int4)0, 2, 4)))
#define HIGH_NIBBLES(a, b)        (NIBBLES(u4, a, b, (int4)0).zw >> 4)
#define FIRST_NIBBLES(T, a, b, c) PASTE(nibbles_, T)(a, b, c, 0, 1)
#define FIRST_BYTES(T, a, b, c)   PASTE(words_, T)(a, b, c, 0, 1)
#define BYTES_APART(T, a, b, c)                                                          \
    (int4)(PASTE(words_, T)(a, b, (c).xy, 0, 4), PASTE(words_, T)(a, b, (c).zw, 4, 8))
#define ROW_HALVES(a)   (a)
#define mad_u8(a, b, c) words_u8(a, b, c, 0, 8)
#define mad_i8(a, b, c) words_i8(a, b, c, 0, 8)
#define ROWS_APART(a)   (a)
#define APART_u4(c)     (int4)((c).xy, (c).zw >> 4)
#define APART_i4(c)     ((c) >> 4)
#define APART(T, c)     PASTE(APART_, T)(c)
#define TOGETHER_u4(c)  (APART(u4, c).xy + APART(u4, c).zw)
#define TOGETHER_i4(c)  ((c).xy + (c).zw)
#define TIMES_u4        1
#define TIMES_i4        16
#define TOGETHER(T, c)  PASTE(TOGETHER_, T)(c)
#else
typedef int2 nibble_sum;
typedef a_rows4 apart_rows;
#define BYTES_APART(T, a, b, c)   PASTE(mad_, T)(a, b, c)
#define NIBBLES(T, a, b, c)       PASTE(mad_, T)(a, b, c)
#define HIGH_NIBBLES(a, b)        mad_u4(a, b, (int2)0)
#define FIRST_NIBBLES(T, a, b, c) PASTE(mad_, T)(a, b, c)
#define FIRST_BYTES(T, a, b, c)   PASTE(mad_, T)(a, b, c)
#define NIBBLES_APART(T, a, b, c) PASTE(mad_, T)(a, b, c)
#define NIBBLE_HALVES(T, a, b)    PASTE(mad_, T)(a, b, (int4)0)
#define APART(T, c)               (c)
#define TOGETHER(T, c)            (c)
#define TIMES_u4                  1
#define TIMES_i4                  1

/* Splits two rows into four: their first 16 slots, then their last 16, with zeros elsewhere. */
#define ROW_HALVES(a)                                                                    \
    ((apart_rows)((a) & (a_row)(get_sub_group_local_id() < SG / 2 ? -1 : 0),             \
                  (a) & (a_row)(get_sub_group_local_id() < SG / 2 ? 0 : -1)))
/* Splits two rows into four: their even slots, then their odd ones, with zeros elsewhere. */
#if SG == 16
#define ROWS_APART(a) (short4)((a) & (short)0xff, (a) & (short)0xff00)
#else
#define ROWS_APART(a) (int4)((a)&0xff00ff, (a) & (int)0xff00ff00)
#endif
#endif
