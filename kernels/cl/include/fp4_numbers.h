/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of MXFP4 and NVFP4: floats of 1 sign, 2 exponent and 1 mantissa bits. Doubled, they
 * are integers.
 */
#define FP4_DOUBLES (char16)(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

static inline char16
fp4_doubles(uchar16 q)
{
#ifdef __SSSE3__
    return look_up_bytes(FP4_DOUBLES, q & (uchar)15);
#else
    const char16 m = as_char16(q & (uchar)7);
    const char16 size = m > (char)6 ? (char16)12 : m > (char)4 ? m + m - (char)4 : m;
    return as_char16(q & (uchar)8) > (char)0 ? -size : size;
#endif
}
