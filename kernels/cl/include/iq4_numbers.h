/* SPDX-License-Identifier: Apache-2.0
 *
 * The 16 numbers of IQ4_NL and IQ4_XS, which are closer together around zero.
 */
#include "nibbles.h"

#define IQ4_NUMBERS                                                                      \
    (char16)(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)

#ifdef SG
/* Returns r of 0 … 15 for each of eight nibbles v in a word: number v is 16 v + r - 127, and 12
 * less if v is 8 or more. The logic computes each bit of all r at once. */
static inline uint4
iq4_nibbles(uint4 v)
{
    const uint4 b = v >> 1u, c = v >> 2u, d = v >> 3u;
    const uint4 h = (v | ~b) & c;
    const uint4 four = (((v ^ c) | ~b) & d) ^ ((b ^ c) | v);
    return nibbles_of_bits((h ^ b ^ d) << 3u, four << 2u, ((h ^ v) & ~d) << 1u,
                           bitselect(v, b, c) & ~(b ^ c ^ d));
}

/* Returns the numbers + 127 as bytes, from v in the high nibbles and r in the low ones. */
static inline uint4
iq4_bytes(uint4 v, uint4 r)
{
    const uint4 eight = v >> 4 & 0x08080808u;
    return bitselect(r, v, (uint4)0xf0f0f0f0u) - eight - (eight >> 1);
}
#endif

static inline char16
iq4_numbers(uchar16 q)
{
#ifdef SG
    const uint4 v = as_uint4(q);
    return as_char16((iq4_bytes(v << 4, iq4_nibbles(v)) + 0x01010101u) ^ 0x80808080u);
#else
    return look_up_bytes(IQ4_NUMBERS, q);
#endif
}
