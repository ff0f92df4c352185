/* SPDX-License-Identifier: Apache-2.0
 *
 * MXFP4: { u8 e; u8 qs[16] }. A weight is 2^(e - 127) times a float of 1 sign, 2 exponent and 1
 * mantissa bits; low nibbles are columns 0 … 15, high ones 16 … 31.
 */
#ifdef FORMAT_mxfp4
#define COLUMNS_mxfp4 32
#define BYTES_mxfp4   17
#define UNIT_mxfp4    1
#define ZERO_mxfp4    16
#define BITS_mxfp4    5

/* Returns 2^(e - 128), the scale of doubled numbers; for e < 2 it is subnormal. */
static inline float
mxfp4_factor(uint e)
{
    return as_float(e < 2 ? 0x200000u << e : (e - 1) << 23);
}

static inline char16
mxfp4_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = (float2)(mxfp4_factor(block[0]), 0.0f);
    return fp4_doubles(block_bytes16(block + 1) >> (uchar)(4 * i));
}

#ifdef __SSSE3__
VALUES_OF_INTEGERS(mxfp4)
#else
/* Returns the weights by way of halves: a 4-bit float whose three bits below the sign become the
 * lowest exponent bits and the highest mantissa bit of a half is 2^-14 times its value. */
static inline float16
mxfp4_values(__global const uchar *block, uint i)
{
    const ushort16 q = convert_ushort16(block_bytes16(block + 1)) >> (ushort)(4 * i);
    const ushort16 bits = (q & (ushort)7) << (ushort)9 | (q & (ushort)8) << (ushort)12;
    return ldexp(vload_half16(0, (const half *)&bits), (int16)(block[0] - 127 + 14));
}
#endif

#ifdef UNITS
static inline void
mxfp4_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = quads(p + 1, 17);
    /* Like mxfp4_factor: 0x400000 is the float 2^-127, and twice that is 2^-126. */
    const uint4 e = (uint4)(p[0], p[17], p[34], p[51]) << 23;
    put_factors(as_float4(max(e, (uint4)0x400000)) * 0.5f, u);
    u->q[0] = look_up_words(FP4_DOUBLES + (char)ZERO_mxfp4, q & 0x0f0f0f0fu);
    u->q[1] = look_up_words(FP4_DOUBLES + (char)ZERO_mxfp4, q >> 4 & 0x0f0f0f0fu);
}
#endif
#endif
