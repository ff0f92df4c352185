/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of the formats with grids (iq_grids.h), 16 neighbouring columns at a time. Magnitudes
 * are entries of the grid, signs are bits. Formats with 7 sign bits for 8 columns derive the eighth
 * by even parity. Sums of four bytes in a word never carry from one byte to the next.
 */
static inline char16
with_signs(char16 size, uint signs)
{
    const uint4 negative = as_uint4(spread_bits(signs));
    return as_char16((as_uint4(size) ^ negative) + (negative & 0x01010101u));
}

#define NUMBERS_OF_SIZES(name)                                                           \
    static inline char16 name##_numbers(__global const uchar *block, uint i)             \
    {                                                                                    \
        return with_signs(name##_sizes(block, i), name##_signs(block, i));               \
    }

/* Sets bit 7, the sign of the eighth column, to the parity of the other seven (even parity). */
static inline uint
even_signs(uint seven)
{
    return seven | (popcount(seven) & 1) << 7;
}

/* Returns the 16 signs of pair i of column groups; 28 bits are four groups of 8 columns, 7 bits
 * each. */
static inline uint
even_signs16(uint bits, uint i)
{
    const uint pair = bits >> 14 * i;
    return even_signs(pair & 127) | even_signs(pair >> 7 & 127) << 8;
}

/* Returns the magnitudes 8, 25, 43 of two entries of IQ2, which are 2-bit codes. */
static inline char16
iq2_sizes(uint2 entry)
{
    const uint4 q = as_uint4(spread_pairs(entry.x | entry.y << 16));
    return as_char16(0x08080808u | q | q << 4 | (q >> 1 & 0x01010101u));
}

#define NUMBERS_OF_ENTRIES(name)                                                         \
    static inline char16 name##_sizes(__global const uchar *block, uint i)               \
    {                                                                                    \
        return iq2_sizes(name##_entries(block, i));                                      \
    }                                                                                    \
    NUMBERS_OF_SIZES(name)

/* Returns the numbers 0 to 7 of four entries of IQ3 as bytes; formats map them to magnitudes. */
static inline char16
iq3_numbers(uint4 entry)
{
    const uint4 two = (entry | entry << 8) & 0x00ff00ffu;
    return as_char16((two | two << 4) & 0x0f0f0f0fu);
}

/* Returns 8 q + 1, or 8 q - 1 if first_less or second_less, for the q of -1, 0, 1 of two entries of
 * IQ1. */
static inline char16
iq1_eighths(uint first, uint second, bool first_less, bool second_less)
{
    const uint4 q = as_uint4(spread_pairs(first | second << 16));
    const uint a = first_less ? 0x77777777 : 0x79797979; /* 128 - 9, 128 - 7 */
    const uint b = second_less ? 0x77777777 : 0x79797979;
    return as_char16(((q << 3) + (uint4)(a, a, b, b)) ^ 0x80808080u);
}
