/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ4_XS: { f16 d; u8 scales_h[2]; u8 scales_l[4]; u8 qs[128] }. A weight is d (scale - 32) times
 * one of 16 numbers (iq4_numbers.h); sub-blocks of 32 columns share a scale and have their columns
 * in the order of IQ4_NL. A scale has 4 low bits in scales_l and 2 high ones in scales_h.
 */
#ifdef FORMAT_iq4_xs
#define COLUMNS_iq4_xs 256
#define BYTES_iq4_xs   136
#define UNIT_iq4_xs 1
#define ZERO_iq4_xs 128

static inline char16
iq4_xs_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint j = i / 2;
    const int low = block[4 + j / 2] >> j % 2 * 4 & 15;
    const int high = block[2 + j / 4] >> j % 4 * 2 & 3;
    const uchar16 q = block_bytes16(block + 8 + 16 * j);
    *f = (float2)(block_half(block) * ((low | high << 4) - 32), 0.0f);
    return iq4_numbers(q >> (uchar)(i % 2 * 4) & (uchar)15);
}
VALUES_OF_INTEGERS(iq4_xs)

#ifdef UNITS
static inline void
iq4_xs_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = ((__global const loose_uint16 *)(p + 8 + 64 * i))->v;
    const uint4 low = (uint4)block_ushort(p + 4 + 2 * i) >> (uint4)(0, 4, 8, 12) & 15;
    const uint4 high = (uint4)p[2 + i] >> (uint4)(0, 2, 4, 6) & 3;
    const float4 scale = convert_float4(as_int4(low | high << 4) - 32);
    put_factors(scale * block_half(p), u);
    u->q[0] = look_up_words(IQ4_NUMBERS ^ (char)-128, q & 0x0f0f0f0fu);
    u->q[1] = look_up_words(IQ4_NUMBERS ^ (char)-128, q >> 4 & 0x0f0f0f0fu);
}
#endif
#endif
