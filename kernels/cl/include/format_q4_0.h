/* SPDX-License-Identifier: Apache-2.0
 *
 * Q4_0: { f16 d; u8 qs[16] }. A weight is d (q - 8); low nibbles are columns 0 … 15, high ones 16 …
 * 31.
 */
#ifdef FORMAT_q4_0
#define COLUMNS_q4_0 32
#define BYTES_q4_0   18
#define UNIT_q4_0 1
#define ZERO_q4_0 8
#define BITS_q4_0 4

static inline char16
q4_0_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = (float2)(block_half(block), 0.0f);
    return as_char16(block_bytes16(block + 2) >> (uchar)(4 * i) & (uchar)15) - (char)8;
}
VALUES_OF_INTEGERS(q4_0)

#ifdef UNITS
static inline void
q4_0_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = quads(p + 2, 18);
    put_factors(block_halves(p, 18), u);
    u->q[0] = q & 0x0f0f0f0fu;
    u->q[1] = q >> 4 & 0x0f0f0f0fu;
}
#endif
#endif
