/* SPDX-License-Identifier: Apache-2.0
 *
 * Q4_1: { f16 d, m; u8 qs[16] }. A weight is d q + m; low nibbles are columns 0 … 15, high ones
 * 16 … 31.
 */
#ifdef FORMAT_q4_1
#define COLUMNS_q4_1  32
#define BYTES_q4_1    20
#define UNIT_q4_1 1
#define ZERO_q4_1 0
#define BITS_q4_1 4
#define MINIMUMS_q4_1 1

static inline char16
q4_1_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = (float2)(block_half(block), -block_half(block + 2));
    return as_char16(block_bytes16(block + 4) >> (uchar)(4 * i) & (uchar)15);
}
VALUES_OF_INTEGERS(q4_1)

#ifdef UNITS
static inline void
q4_1_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = quads(p + 4, 20);
    const float4 m = block_halves(p + 2, 20);
    put_factors(block_halves(p, 20), u);
    u->minimum = -SPREAD2(m, 0);
    u->q[0] = q & 0x0f0f0f0fu;
    u->q[1] = q >> 4 & 0x0f0f0f0fu;
}
#endif
#endif
