/* SPDX-License-Identifier: Apache-2.0
 *
 * NVFP4: { u8 d[4]; u8 qs[32] }. A weight is d times a float of 1 sign, 2 exponent and 1 mantissa
 * bits; sub-blocks of 16 columns share a d, and their low nibbles are columns 0 … 7. d is a float
 * of 4 exponent bits (bias 7) and 3 mantissa bits: its bits as those of a half are 2^-8 times its
 * value. Its bit 7 is ignored; the bits of NaN (0x7f) mean 0.
 */
#ifdef FORMAT_nvfp4
#define COLUMNS_nvfp4 64
#define BYTES_nvfp4   36
#define UNIT_nvfp4 1
#define ZERO_nvfp4 16
#define BITS_nvfp4 5
#define FACTORS_nvfp4 16

static inline char16
nvfp4_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint seven = block[i] & 127, d = seven == 127 ? 0 : seven;
    const uchar8 q = vload8(0, block + 4 + 8 * i);
    *f = (float2)(half_bits((ushort)(d << 7)) * 128.0f, 0.0f);
    return fp4_doubles((uchar16)(q, q >> (uchar)4));
}
VALUES_OF_INTEGERS(nvfp4)

#ifdef UNITS
static inline void
nvfp4_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = (uint16)(((__global const loose_uint8 *)(p + 4))->v,
                              ((__global const loose_uint8 *)(p + 40))->v);
    const uint16 shift = (uint16)((uint4)(0, 0, 4, 4), (uint4)(0, 0, 4, 4),
                                  (uint4)(0, 0, 4, 4), (uint4)(0, 0, 4, 4));
    const uchar8 d = (uchar8)(vload4(0, p), vload4(0, p + 36)) & (uchar)127;
    const ushort8 bits = convert_ushort8(d == (uchar)127 ? (uchar8)0 : d) << (ushort)7;
    const float4 even = half_bits4(bits.even) * 128.0f,
                 odd = half_bits4(bits.odd) * 128.0f;
    u->factor[0] = SPREAD4(even, 0);
    u->factor[1] = SPREAD4(odd, 0);
    const char16 numbers = FP4_DOUBLES + (char)ZERO_nvfp4;
    u->q[0] = look_up_words(
        numbers, (uint16)(q.s0101, q.s4545, q.s8989, q.scdcd) >> shift & 0x0f0f0f0fu);
    u->q[1] = look_up_words(
        numbers, (uint16)(q.s2323, q.s6767, q.sabab, q.sefef) >> shift & 0x0f0f0f0fu);
}
#endif
#endif
