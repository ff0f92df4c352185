/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of activations as 8-bit integers, for products with weights of any format as bytes
 * (units.h): units of 128 k as
 *
 *     [units][2][16]  32-bit words: byte i of word 4 b + j of half h is k = 32 b + 16 h + 4 j + i
 *     [units][4]      f32: the scale of the integers of each 32 k
 *     [units][8]      minus the sum of each 16 integers: zero points and minimums of weights are
 *                     multiplied by these sums, not by those of x, so that the only error is the
 *                     rounding of x, times (weight - zero point)
 *
 * A scale is of 32 k, or the same for all 128, as the writer of the row chose. The integers are
 * exact to 1/254 of the largest magnitude with the same scale. If that is infinite or NaN, the
 * scale is NaN.
 */
#include "vector.h"

#define BYTE_UNIT       128
#define BYTE_UNIT_WORDS (32 + 4 + 8)

/* Stores the 16 integers q of half h of sub-block b of a unit; returns their sum. */
static inline int
store_bytes(int16 q, uint b, uint h, __global int *unit)
{
    const int8 a = q.lo + q.hi;
    const int4 c = a.lo + a.hi;
    vstore4(as_int4(convert_char16(q)), 0, unit + h * 16 + b * 4);
    return c.x + c.y + c.z + c.w;
}

/* Writes unit u of a row from the 128 floats at v, with one scale per `columns` columns: 32 or
 * 128. */
__attribute__((always_inline)) static inline void
write_bytes(const float *v, const uint columns, __global int *row, uint u, uint units)
{
    __global int *factors = row + units * 32 + u * 4, *less = row + units * 36 + u * 8;
    for (uint first = 0; first < BYTE_UNIT; first += columns) {
        float16 most = 0, wrong = 0;
        for (uint i = 0; i < columns; i += 16) {
            const float16 x = vload16(0, v + first + i);
            most = fmax(most, fabs(x));
            wrong += x * 0.0f;
        }
        const float largest = max16(most);
        const float scale = largest > 1e-30f ? 127.0f / largest : 0.0f;
        const float factor = largest / 127.0f + sum16(wrong);
        for (uint k = first; k < first + columns; k += 16)
            less[k / 16] = -store_bytes(convert_int16_rte(vload16(0, v + k) * scale),
                                        k / 32, k / 16 % 2, row + u * 32);
        for (uint b = first / 32; b < (first + columns) / 32; b++)
            factors[b] = as_int(factor);
    }
}
