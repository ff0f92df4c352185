/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders of ggml's blocks. In blocks of nibbles the low nibble of byte j is element j, the high
 * nibble the element half a block later. The super-blocks of 256 columns (…_K) have scales for
 * sub-blocks, and one or two f16 by which these scales are multiplied. The comment at a function is
 * the layout of a block, then the value of an element q. */
#include "runtime/weight_decode.h"

#include <math.h>

#include "runtime/util/element.h"

static float
half_at(const uint8_t *p)
{
    return xm_load_float(XM_F16, p, 0);
}

/* { f16 d; u8 qs[16] }:  d (q - 8) */
void
xm_decode_q4_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    for (int j = 0; j < 16; j++) {
        out[j] = (float)((block[2 + j] & 15) - 8) * d;
        out[j + 16] = (float)((block[2 + j] >> 4) - 8) * d;
    }
}

/* { f16 d, m; u8 qs[16] }:  d q + m */
void
xm_decode_q4_1(const uint8_t *block, float *out)
{
    const float d = half_at(block), m = half_at(block + 2);
    for (int j = 0; j < 16; j++) {
        out[j] = d * (float)(block[4 + j] & 15) + m;
        out[j + 16] = d * (float)(block[4 + j] >> 4) + m;
    }
}

/* Element j of 32 with 5 bits in { u8 high[4], low[16] }: the nibble j of `low`, with bit j of
 * `high` as fifth bit. */
static int
five_bits(const uint8_t *q, int j)
{
    const int low = j < 16 ? q[4 + j] & 15 : q[4 + j - 16] >> 4;
    return low | (q[j / 8] >> j % 8 & 1) << 4;
}

/* { f16 d; u8 qh[4]; u8 qs[16] }:  d (q - 16) */
void
xm_decode_q5_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    for (int j = 0; j < 32; j++)
        out[j] = (float)(five_bits(block + 2, j) - 16) * d;
}

/* { f16 d, m; u8 qh[4]; u8 qs[16] }:  d q + m */
void
xm_decode_q5_1(const uint8_t *block, float *out)
{
    const float d = half_at(block), m = half_at(block + 2);
    for (int j = 0; j < 32; j++)
        out[j] = d * (float)five_bits(block + 4, j) + m;
}

/* { f16 d; i8 qs[32] }:  d q */
void
xm_decode_q8_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    for (int j = 0; j < 32; j++)
        out[j] = (float)(int8_t)block[2 + j] * d;
}

/* The values of the 16 codes of IQ4_NL and IQ4_XS, closer together around zero. */
static const float nonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                    1,    13,   25,  38,  53,  69,  89,  113};

/* Decodes 16 bytes of nibbles to 32 values times `factor`. */
static void
decode_nonlinear(const uint8_t *q, float factor, float *out)
{
    for (int j = 0; j < 16; j++) {
        out[j] = factor * nonlinear[q[j] & 15];
        out[j + 16] = factor * nonlinear[q[j] >> 4];
    }
}

/* { f16 d; u8 qs[16] }: d nonlinear[q] */
void
xm_decode_iq4_nl(const uint8_t *block, float *out)
{
    decode_nonlinear(block + 2, half_at(block), out);
}

/* { u8 scales[16]; u8 qs[64]; f16 d, dmin }: d scale q - dmin minimum, sub-blocks of 16. The low
 * nibble of scales[i] is the scale, the high one the minimum. Two bits of each of 32 bytes are 32
 * columns, two sub-blocks. */
void
xm_decode_q2_k(const uint8_t *block, float *out)
{
    const float d = half_at(block + 80), dmin = half_at(block + 82);
    for (int k = 0; k < 256; k++) {
        const uint8_t scale = block[k / 16];
        const int q = block[16 + k / 128 * 32 + k % 32] >> k % 128 / 32 * 2 & 3;
        out[k] = d * (float)(scale & 15) * (float)q - dmin * (float)(scale >> 4);
    }
}

/* Scale j of 16 of Q3_K: its 4 low bits are nibbles of b[0 … 7], its 2 high bits are in b[8 …
 * 11]. */
static int
q3_k_scale(const uint8_t *b, int j)
{
    const int low = j < 8 ? b[j] & 15 : b[j - 8] >> 4;
    return (low | (b[8 + j % 4] >> j / 4 * 2 & 3) << 4) - 32;
}

/* { u8 hmask[32]; u8 qs[64]; u8 scales[12]; f16 d }: d scale (q - 4), sub-blocks of 16; the third
 * bit of q in column 32 j + l is bit j of hmask[l] */
void
xm_decode_q3_k(const uint8_t *block, float *out)
{
    const float d = half_at(block + 108);
    for (int k = 0; k < 256; k++) {
        const int low = block[32 + k / 128 * 32 + k % 32] >> k % 128 / 32 * 2 & 3;
        const int q = low | (block[k % 32] >> k / 32 & 1) << 2;
        out[k] = d * (float)q3_k_scale(block + 96, k / 16) * (float)(q - 4);
    }
}

/* Scale and minimum of sub-block j of 8: 6 bits each, packed in 12 bytes. */
static void
scale_and_minimum(const uint8_t *b, int j, int *scale, int *minimum)
{
    if (j < 4) {
        *scale = b[j] & 63;
        *minimum = b[j + 4] & 63;
        return;
    }
    *scale = (b[j + 4] & 15) | (b[j - 4] >> 6) << 4;
    *minimum = (b[j + 4] >> 4) | (b[j] >> 6) << 4;
}

/* { f16 d, dmin; u8 scales[12]; u8 qs[128] }:  d scale q - dmin minimum, sub-blocks of 32 */
void
xm_decode_q4_k(const uint8_t *block, float *out)
{
    const float d = half_at(block), dmin = half_at(block + 2);
    for (int j = 0; j < 8; j++) {
        int scale, minimum;
        scale_and_minimum(block + 4, j, &scale, &minimum);
        const float factor = d * (float)scale, offset = dmin * (float)minimum;
        const uint8_t *q = block + 16 + j / 2 * 32;
        for (int l = 0; l < 32; l++)
            out[32 * j + l] = factor * (float)(j % 2 ? q[l] >> 4 : q[l] & 15) - offset;
    }
}

/* { f16 d, dmin; u8 scales[12]; u8 qh[32]; u8 qs[128] }: as Q4_K; bit j of qh[l] is the fifth bit
 * of q in column 32 j + l */
void
xm_decode_q5_k(const uint8_t *block, float *out)
{
    const float d = half_at(block), dmin = half_at(block + 2);
    for (int j = 0; j < 8; j++) {
        int scale, minimum;
        scale_and_minimum(block + 4, j, &scale, &minimum);
        const float factor = d * (float)scale, offset = dmin * (float)minimum;
        const uint8_t *q = block + 48 + j / 2 * 32;
        for (int l = 0; l < 32; l++) {
            const int low = j % 2 ? q[l] >> 4 : q[l] & 15, high = block[16 + l] >> j & 1;
            out[32 * j + l] = factor * (float)(low | high << 4) - offset;
        }
    }
}

/* { u8 ql[128], qh[64]; i8 scales[16]; f16 d }:  d scale (q - 32), sub-blocks of 16 */
void
xm_decode_q6_k(const uint8_t *block, float *out)
{
    const float d = half_at(block + 208);
    for (int k = 0; k < 256; k++) {
        const int half = k / 128, quarter = k % 128 / 32, l = k % 32;
        const uint8_t low = block[64 * half + 32 * (quarter % 2) + l];
        const uint8_t high = block[128 + 32 * half + l] >> 2 * quarter & 3;
        const int q = (quarter < 2 ? low & 15 : low >> 4) | high << 4;
        out[k] = d * (float)(int8_t)block[192 + k / 16] * (float)(q - 32);
    }
}

/* { f16 d; u16 scales_h; u8 scales_l[4]; u8 qs[128] }: d (scale - 32) nonlinear[q], sub-blocks of
 * 32; a scale has 4 low bits in scales_l, 2 high ones in scales_h */
void
xm_decode_iq4_xs(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    for (int j = 0; j < 8; j++) {
        const int low = block[4 + j / 2] >> j % 2 * 4 & 15;
        const int high = block[2 + j / 4] >> j % 4 * 2 & 3;
        decode_nonlinear(block + 8 + 16 * j, d * (float)((low | high << 4) - 32),
                         out + 32 * j);
    }
}

/* The values of a 4-bit float: 1 sign, 2 exponent, 1 mantissa bits. */
static const float four_bits[16] = {0, .5f,  1,  1.5f,  2,  3,  4,  6,
                                    0, -.5f, -1, -1.5f, -2, -3, -4, -6};

/* { u8 e; u8 qs[16] }: 2^(e - 127) four_bits[q] */
void
xm_decode_mxfp4(const uint8_t *block, float *out)
{
    for (int j = 0; j < 16; j++) {
        out[j] = ldexpf(four_bits[block[1 + j] & 15], block[0] - 127);
        out[j + 16] = ldexpf(four_bits[block[1 + j] >> 4], block[0] - 127);
    }
}

/* Decodes an 8-bit float of 4 exponent bits and 3 mantissa bits; bit 7 is ignored. The bits of NaN
 * in f8e4m3 mean 0. */
static float
eight_bits(uint8_t x)
{
    const int exponent = x >> 3 & 15, mantissa = x & 7;
    if (exponent == 15 && mantissa == 7)
        return 0.0f;
    return exponent ? ldexpf((float)(8 + mantissa), exponent - 10)
                    : ldexpf((float)mantissa, -9);
}

/* { u8 d[4]; u8 qs[32] }: eight_bits(d) four_bits[q], sub-blocks of 16 */
void
xm_decode_nvfp4(const uint8_t *block, float *out)
{
    for (int k = 0; k < 64; k++) {
        const uint8_t q = block[4 + k / 16 * 8 + k % 8];
        out[k] = eight_bits(block[k / 16]) * four_bits[k % 16 < 8 ? q & 15 : q >> 4];
    }
}

/* { f16 d; u8 qs[16] }: d where a column's bit is set, else -d */
void
xm_decode_q1_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    for (int k = 0; k < 128; k++)
        out[k] = block[2 + k / 8] >> k % 8 & 1 ? d : -d;
}

/* { f16 d; u8 qs[16] }:  d (q - 1), 2 bits each */
void
xm_decode_q2_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    for (int k = 0; k < 64; k++)
        out[k] = (float)((block[2 + k / 4] >> k % 4 * 2 & 3) - 1) * d;
}

/* Digit n of 5 (0: the highest) of a base-3 number x. The byte is x 256 / 243 rounded, so that a
 * digit is the integer part of 3 times the byte's fraction. */
static int
ternary_digit(uint8_t byte, int n)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    return (uint8_t)(byte * power[n]) * 3 >> 8;
}

/* { u8 qs[48], qh[4]; f16 d }: d (q - 1), q a base-3 digit. Digit n of qs[0 … 31] is 32 columns, of
 * qs[32 … 47] 16 columns, of qh 4 columns. */
void
xm_decode_tq1_0(const uint8_t *block, float *out)
{
    const float d = half_at(block + 52);
    for (int k = 0; k < 256; k++) {
        const int q = k < 160   ? ternary_digit(block[k % 32], k / 32)
                      : k < 240 ? ternary_digit(block[32 + k % 16], (k - 160) / 16)
                                : ternary_digit(block[48 + k % 4], (k - 240) / 4);
        out[k] = d * (float)(q - 1);
    }
}

/* { u8 qs[64]; f16 d }: d (q - 1); two bits of each of 32 bytes are 32 columns */
void
xm_decode_tq2_0(const uint8_t *block, float *out)
{
    const float d = half_at(block + 64);
    for (int k = 0; k < 256; k++) {
        const int q = block[k / 128 * 32 + k % 32] >> k % 128 / 32 * 2 & 3;
        out[k] = d * (float)(q - 1);
    }
}
