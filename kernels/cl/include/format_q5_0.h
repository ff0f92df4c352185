/* SPDX-License-Identifier: Apache-2.0
 *
 * Q5_0: { f16 d; u8 qh[4]; u8 qs[16] }. A weight is d (q - 16); q has its four low bits as in Q4_0,
 * and for column j the fifth bit is bit j of qh.
 */
#ifdef FORMAT_q5_0
#define COLUMNS_q5_0 32
#define BYTES_q5_0   22
#define UNIT_q5_0 1
#define ZERO_q5_0 16
#define BITS_q5_0 5

static inline char16
q5_0_integers(__global const uchar *block, uint i, float2 *f)
{
    const uchar16 low = block_bytes16(block + 6) >> (uchar)(4 * i) & (uchar)15;
    *f = (float2)(block_half(block), 0.0f);
    return as_char16(low | (spread_bits(block_ushort(block + 2 + 2 * i)) & (uchar)16)) -
           (char)16;
}
VALUES_OF_INTEGERS(q5_0)

#ifdef UNITS
static inline void
q5_0_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = quads(p + 6, 22);
    const ulong low = as_ulong(block_ushorts(p + 2, 22));
    const ulong high = as_ulong(block_ushorts(p + 4, 22));
    put_factors(block_halves(p, 22), u);
    u->q[0] = (q & 0x0f0f0f0fu) | bits_as_bytes(low, 16);
    u->q[1] = (q >> 4 & 0x0f0f0f0fu) | bits_as_bytes(high, 16);
}
#endif
#endif
