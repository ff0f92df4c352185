/* SPDX-License-Identifier: Apache-2.0
 *
 * ROUND_BF16(T, x): rounds x of type T, float or float16, to the nearest bf16 number; ties go to
 * even, NaN becomes a quiet NaN, as on the host (runtime/util/element.h). It works on the bits, so
 * that the compiler cannot merge it with the operation before.
 */
#include "types.h"

#define ROUND_BITS(T)                                                                    \
    static inline T round_bits_##T(T u)                                                  \
    {                                                                                    \
        const T nearest = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;                \
        const T quiet = (u | 0x400000u) & 0xffff0000u;                                   \
        return (u & 0x7fffffffu) > 0x7f800000u ? quiet : nearest;                        \
    }
ROUND_BITS(uint)
ROUND_BITS(uint16)

#define ROUND_float(x)   as_float(round_bits_uint(as_uint(x)))
#define ROUND_float16(x) as_float16(round_bits_uint16(as_uint16(x)))
#define ROUND_BF16(T, x) PASTE(ROUND_, T)(x)
