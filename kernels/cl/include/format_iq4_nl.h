/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ4_NL: { f16 d; u8 qs[16] }. A weight is d times one of 16 numbers (iq4_numbers.h); low nibbles
 * are columns 0 … 15, high ones 16 … 31.
 */
#ifdef FORMAT_iq4_nl
#define COLUMNS_iq4_nl 32
#define BYTES_iq4_nl   18
#define UNIT_iq4_nl 1
#define ZERO_iq4_nl 128

static inline char16
iq4_nl_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = (float2)(block_half(block), 0.0f);
    return iq4_numbers(block_bytes16(block + 2) >> (uchar)(4 * i) & (uchar)15);
}
VALUES_OF_INTEGERS(iq4_nl)

#ifdef UNITS
static inline void
iq4_nl_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = quads(p + 2, 18);
    put_factors(block_halves(p, 18), u);
    u->q[0] = look_up_words(IQ4_NUMBERS ^ (char)-128, q & 0x0f0f0f0fu);
    u->q[1] = look_up_words(IQ4_NUMBERS ^ (char)-128, q >> 4 & 0x0f0f0f0fu);
}
#endif
#endif
