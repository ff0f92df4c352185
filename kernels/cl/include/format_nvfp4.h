/* SPDX-License-Identifier: Apache-2.0
 *
 * NVFP4: { u8 d[4]; u8 qs[32] }, d times a float of 1 sign, 2 exponent and 1 mantissa bits in
 * sub-blocks of 16, whose low nibbles are columns 0 … 7. d is a float of 4 exponent bits, their
 * bias 7, and 3 mantissa bits: as bits of a half it is 2^-8 of its value. 0x7f is 0.
 */
#ifdef FORMAT_nvfp4
#define COLUMNS_nvfp4 64
#define BYTES_nvfp4   36
#define FACTORS_nvfp4 16

static inline char16
nvfp4_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint d = block[i] == 0x7f ? 0 : block[i] & 127;
    const uchar8 q = vload8(0, block + 4 + 8 * i);
    *f = (float2)(half_bits((ushort)(d << 7)) * 128.0f, 0.0f);
    return fp4_doubles((uchar16)(q, q >> (uchar)4));
}
VALUES_OF_INTEGERS(nvfp4)
#endif
