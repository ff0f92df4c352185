/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of the formats with grids (iq_grids.h), 16 neighbouring columns at a time: sizes are
 * entries of the grid, signs are bits; where there are 7 for 8 columns, they are even in number.
 */
static inline char16
with_signs(char16 size, uint signs)
{
    const char16 negative = as_char16(spread_bits(signs));
    return (size ^ negative) - negative;
}

/* The sign of the eighth column: as many are set as makes their number even. */
static inline uint
even_signs(uint seven)
{
    return seven | (popcount(seven) & 1) << 7;
}

/* Pair i of 28 bits, 7 a column group of 8, as 16 signs. */
static inline uint
even_signs16(uint bits, uint i)
{
    const uint pair = bits >> 14 * i;
    return even_signs(pair & 127) | even_signs(pair >> 7 & 127) << 8;
}

/* IQ2: sizes 8, 25, 43 of two entries. */
static inline char16
iq2_sizes(uint first, uint second)
{
    const char16 q = as_char16(spread_pairs(first | second << 16));
    return (char)8 + q * (char)17 - (q > (char)1);
}

/* IQ3: four entries, as numbers of which size. */
static inline char16
iq3_numbers(uint4 entry)
{
    const uchar8 q = as_uchar8((uint2)(entry.x | entry.y << 16, entry.z | entry.w << 16));
    uchar16 v;
    v.even = q & (uchar)15;
    v.odd = q >> (uchar)4;
    return as_char16(v);
}

/* IQ1: eight times -1, 0, 1 of two entries, each with an eighth to it or from it. */
static inline char16
iq1_eighths(uint first, uint second, bool first_less, bool second_less)
{
    const char16 q = as_char16(spread_pairs(first | second << 16));
    const char8 a = first_less ? -9 : -7, b = second_less ? -9 : -7;
    return q * (char)8 + (char16)(a, b);
}
