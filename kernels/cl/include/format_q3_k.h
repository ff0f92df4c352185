/* SPDX-License-Identifier: Apache-2.0
 *
 * Q3_K: { u8 hmask[32]; u8 qs[64]; u8 scales[12]; f16 d }. A weight is d (scale - 32) (q - 4);
 * sub-blocks of 16 columns share a scale. The two low bits of q are stored as in Q2_K; the third
 * bit of column 32 j + l of the block is bit j of hmask[l]. A scale has 4 low bits in the first 8
 * bytes of scales[] and 2 high ones in the last 4.
 */
#ifdef FORMAT_q3_k
#define COLUMNS_q3_k 256
#define BYTES_q3_k   110
#define UNIT_q3_k 1
#define ZERO_q3_k 4
#define BITS_q3_k 3
#define FACTORS_q3_k 16

static inline char16
q3_k_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint l = i % 2 * 16;
    const int scale_low = block[96 + i % 8] >> i / 8 * 4 & 15;
    const int scale_high = block[104 + i % 4] >> i / 4 * 2 & 3;
    const uchar16 low = block_bytes16(block + 32 + i / 8 * 32 + l);
    const uchar16 high = block_bytes16(block + l) >> (uchar)(i / 2) & (uchar)1;
    *f = (float2)(block_half(block + 108) * ((scale_low | scale_high << 4) - 32), 0.0f);
    return as_char16((low >> (uchar)(i % 8 / 2 * 2) & (uchar)3) | high << (uchar)2) -
           (char)4;
}
VALUES_OF_INTEGERS(q3_k)

#ifdef UNITS
static inline void
q3_k_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint4 a = loose4(p + 32 + 32 * i), b = loose4(p + 48 + 32 * i);
    const uint4 c = loose4(p), d = loose4(p + 16);
    const uint16 two = (uint16)((uint4)0, (uint4)2, (uint4)4, (uint4)6);
    const uint16 bit = (uint16)((uint4)0, (uint4)1, (uint4)2, (uint4)3) + 4 * i;
    const uchar8 low = vload8(0, p + 96) >> (uchar)(4 * i) & (uchar)15;
    const uchar4 rest = vload4(0, p + 104) >> (uchar)(4 * i);
    const uchar8 high = (uchar8)(rest, rest >> (uchar)2) & (uchar)3;
    const char8 q = as_char8(low | high << (uchar)4) - (char)32;
    u->d = block_half(p + 108);
    u->multiplier = convert_short8(q);
    u->taken = u->multiplier * (short)ZERO_q3_k;
    const float8 scale = convert_float8(q) * u->d.x;
    u->factor[0] = SPREAD4(scale.even, 0);
    u->factor[1] = SPREAD4(scale.odd, 0);
    u->q[0] = ((uint16)(a, a, a, a) >> two & 0x03030303u) |
              ((uint16)(c, c, c, c) >> bit & 0x01010101u) << 2;
    u->q[1] = ((uint16)(b, b, b, b) >> two & 0x03030303u) |
              ((uint16)(d, d, d, d) >> bit & 0x01010101u) << 2;
}
#endif
#endif
