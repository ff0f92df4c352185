/* SPDX-License-Identifier: Apache-2.0
 *
 * Q5_1: { f16 d, m; u8 qh[4]; u8 qs[16] }. A weight is d q + m; q is stored as in Q5_0.
 */
#ifdef FORMAT_q5_1
#define COLUMNS_q5_1  32
#define BYTES_q5_1    24
#define UNIT_q5_1 1
#define ZERO_q5_1 0
#define BITS_q5_1 5
#define MINIMUMS_q5_1 1

static inline char16
q5_1_integers(__global const uchar *block, uint i, float2 *f)
{
    const uchar16 low = block_bytes16(block + 8) >> (uchar)(4 * i) & (uchar)15;
    *f = (float2)(block_half(block), -block_half(block + 2));
    return as_char16(low | (spread_bits(block_ushort(block + 4 + 2 * i)) & (uchar)16));
}
VALUES_OF_INTEGERS(q5_1)

#ifdef UNITS
static inline void
q5_1_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = quads(p + 8, 24);
    const ulong low = as_ulong(block_ushorts(p + 4, 24));
    const ulong high = as_ulong(block_ushorts(p + 6, 24));
    const float4 m = block_halves(p + 2, 24);
    put_factors(block_halves(p, 24), u);
    u->minimum = -SPREAD2(m, 0);
    u->q[0] = (q & 0x0f0f0f0fu) | bits_as_bytes(low, 16);
    u->q[1] = (q >> 4 & 0x0f0f0f0fu) | bits_as_bytes(high, 16);
}
#endif
#endif
