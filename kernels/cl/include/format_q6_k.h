/* SPDX-License-Identifier: Apache-2.0
 *
 * Q6_K: { u8 ql[128], qh[64]; i8 scales[16]; f16 d }, d scale (q - 32) in sub-blocks of 16. In each
 * half, columns 32 j + l have their low bits in a nibble of ql[32 (j % 2) + l] and two high bits in
 * qh[l].
 */
#ifdef FORMAT_q6_k
#define COLUMNS_q6_k 256
#define BYTES_q6_k   210
#define UNIT_q6_k 1
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
    const uint16 low = ((__global const loose_uint16 *)(p + 64 * i))->v;
    const uint4 a = loose4(p + 128 + 32 * i), b = loose4(p + 144 + 32 * i);
    const uint16 shift = (uint16)((uint4)0, (uint4)0, (uint4)4, (uint4)4);
    const uint16 two = (uint16)((uint4)0, (uint4)2, (uint4)4, (uint4)6);
    const float8 scale =
        convert_float8(as_char8(vload8(0, p + 192 + 8 * i))) * block_half(p + 208);
    u->factor[0] = spread4(scale.even);
    u->factor[1] = spread4(scale.odd);
    u->q[0] = bytes_less(
        ((uint16)(low.s0123, low.s89ab, low.s0123, low.s89ab) >> shift & 0x0f0f0f0fu) |
            ((uint16)(a, a, a, a) >> two & 0x03030303u) << 4,
        32);
    u->q[1] = bytes_less(
        ((uint16)(low.s4567, low.scdef, low.s4567, low.scdef) >> shift & 0x0f0f0f0fu) |
            ((uint16)(b, b, b, b) >> two & 0x03030303u) << 4,
        32);
}
#endif
#endif
