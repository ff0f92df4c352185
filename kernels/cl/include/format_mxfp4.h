/* SPDX-License-Identifier: Apache-2.0
 *
 * MXFP4: { u8 e; u8 qs[16] }, 2^(e - 127) times a float of 1 sign, 2 exponent and 1 mantissa bits;
 * the low nibbles are columns 0 … 15. As bits of a half without sign, such a float is its value
 * times 2^-14: halves with the same exponent bias 1 and one bit of their mantissa.
 */
#ifdef FORMAT_mxfp4
#define COLUMNS_mxfp4 32
#define BYTES_mxfp4   17

static inline float16
mxfp4_values(__global const uchar *block, uint i)
{
    const ushort16 q = convert_ushort16(block_bytes16(block + 1)) >> (ushort)(4 * i);
    const ushort16 bits = (q & (ushort)7) << (ushort)9 | (q & (ushort)8) << (ushort)12;
    return ldexp(vload_half16(0, (const half *)&bits), (int16)(block[0] - 127 + 14));
}

static inline char16
mxfp4_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint e = block[0];
    *f = (float2)(as_float(e < 2 ? 0x200000u << e : (e - 1) << 23), 0.0f);
    return fp4_doubles(block_bytes16(block + 1) >> (uchar)(4 * i));
}
#endif
