/* SPDX-License-Identifier: Apache-2.0
 *
 * Q6_K: { u8 ql[128], qh[64]; i8 scales[16]; f16 d }. A weight is d scale (q - 32); sub-blocks of
 * 16 columns share a scale. In each half of the block, column 32 j + l has its four low bits in a
 * nibble of ql[32 (j % 2) + l] and its two high bits in qh[l].
 */
#ifdef FORMAT_q6_k
#define COLUMNS_q6_k 256
#define BYTES_q6_k   210
#define UNIT_q6_k 1
#define ZERO_q6_k 32
#define BITS_q6_k 6
#define FACTORS_q6_k 16

static inline char16
q6_k_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint half_block = i / 8, j = i % 8 / 2, l = i % 2 * 16;
    const uchar16 low = block_bytes16(block + 64 * half_block + j % 2 * 32 + l);
    const uchar16 high = block_bytes16(block + 128 + 32 * half_block + l);
    const uchar16 q = (low >> (uchar)(j / 2 * 4) & (uchar)15) |
                      (high >> (uchar)(2 * j) & (uchar)3) << (uchar)4;
    *f = (float2)(block_half(block + 208) * as_char(block[192 + i]), 0.0f);
    return as_char16(q) - (char)32;
}
VALUES_OF_INTEGERS(q6_k)

#ifdef UNITS
static inline void
q6_k_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 low = load_whole(p + 64 * i);
    const uint4 a = loose4(p + 128 + 32 * i), b = loose4(p + 144 + 32 * i);
    const uint16 shift = (uint16)((uint4)0, (uint4)0, (uint4)4, (uint4)4);
    const uint16 two = (uint16)((uint4)0, (uint4)2, (uint4)4, (uint4)6);
    const char8 q = as_char8(vload8(0, p + 192 + 8 * i));
    u->d = block_half(p + 208);
    u->multiplier = convert_short8(q);
    u->taken = u->multiplier * (short)ZERO_q6_k;
    const float8 scale = convert_float8(q) * u->d.x;
    u->factor[0] = SPREAD4(scale.even, 0);
    u->factor[1] = SPREAD4(scale.odd, 0);
    u->q[0] =
        (QUARTERS(low, 0, 2, 0, 2) >> shift & 0x0f0f0f0fu) |
        ((uint16)(a, a, a, a) >> two & 0x03030303u) << 4;
    u->q[1] =
        (QUARTERS(low, 1, 3, 1, 3) >> shift & 0x0f0f0f0fu) |
        ((uint16)(b, b, b, b) >> two & 0x03030303u) << 4;
}
#endif
#endif
