/* SPDX-License-Identifier: Apache-2.0
 *
 * Q2_K: { u8 scales[16]; u8 qs[64]; f16 d, dmin }. A weight is d scale q - dmin minimum; sub-blocks
 * of 16 columns share a byte of scales[], whose low nibble is the scale and whose high nibble the
 * minimum. In each half of the block, column 32 j + l is bits 2 j and 2 j + 1 of qs[l].
 */
#ifdef FORMAT_q2_k
#define COLUMNS_q2_k  256
#define BYTES_q2_k    84
#define UNIT_q2_k 1
#define ZERO_q2_k 0
#define BITS_q2_k 2
#define FACTORS_q2_k  16
#define MINIMUMS_q2_k 1

static inline char16
q2_k_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint scale = block[i];
    const uchar16 q = block_bytes16(block + 16 + i / 8 * 32 + i % 2 * 16);
    *f = (float2)(block_half(block + 80) * (scale & 15),
                  block_half(block + 82) * (scale >> 4));
    return as_char16(q >> (uchar)(i % 8 / 2 * 2) & (uchar)3);
}
VALUES_OF_INTEGERS(q2_k)

#ifdef UNITS
static inline void
q2_k_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint4 a = loose4(p + 16 + 32 * i), b = loose4(p + 32 + 32 * i);
    const uint16 two = (uint16)((uint4)0, (uint4)2, (uint4)4, (uint4)6);
    const uchar8 scales = vload8(0, p + 8 * i);
    u->d = (float2)(block_half(p + 80), block_half(p + 82));
    u->multiplier = convert_short8(scales & (uchar)15);
    u->taken = convert_short8(scales >> (uchar)4);
    const float8 scale = convert_float8(scales & (uchar)15) * u->d.x;
    u->factor[0] = SPREAD4(scale.even, 0);
    u->factor[1] = SPREAD4(scale.odd, 0);
    u->minimum = convert_float8(scales >> (uchar)4) * u->d.y;
    u->q[0] = (uint16)(a, a, a, a) >> two & 0x03030303u;
    u->q[1] = (uint16)(b, b, b, b) >> two & 0x03030303u;
}
#endif
#endif
