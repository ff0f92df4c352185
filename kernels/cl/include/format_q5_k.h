/* SPDX-License-Identifier: Apache-2.0
 *
 * Q5_K: { f16 d, dmin; u8 scales[12]; u8 qh[32]; u8 qs[128] }. As Q4_K, with a fifth bit of q: for
 * column l of sub-block j it is bit j of qh[l].
 */
#ifdef FORMAT_q5_k
#define COLUMNS_q5_k  256
#define BYTES_q5_k    176
#define UNIT_q5_k 1
#define ZERO_q5_k 0
#define BITS_q5_k 5
#define MINIMUMS_q5_k 1

static inline char16
q5_k_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint j = i / 2, l = i % 2 * 16;
    *f = k_factors(block, j);
    const uchar16 low = block_bytes16(block + 48 + j / 2 * 32 + l);
    const uchar16 high = block_bytes16(block + 16 + l) >> (uchar)j & (uchar)1;
    return as_char16((low >> (uchar)(j % 2 * 4) & (uchar)15) | high << (uchar)4);
}
VALUES_OF_INTEGERS(q5_k)

#ifdef UNITS
static inline void
q5_k_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = load_whole(p + 48 + 64 * i);
    const uint16 shifted = q >> 4;
    const uint16 bit = (uint16)((uint4)0, (uint4)1, (uint4)2, (uint4)3) + 4 * i;
    const uint4 low = loose4(p + 16), high = loose4(p + 32);
    k_unit_factors(p, i, u);
    u->q[0] = (QUARTERS_OF(q, shifted, 0, 4, 2, 6) & 0x0f0f0f0fu) |
              ((uint16)(low, low, low, low) >> bit & 0x01010101u) << 4;
    u->q[1] = (QUARTERS_OF(q, shifted, 1, 5, 3, 7) & 0x0f0f0f0fu) |
              ((uint16)(high, high, high, high) >> bit & 0x01010101u) << 4;
}
#endif
#endif
