/* SPDX-License-Identifier: Apache-2.0
 *
 * ggml's blocks. A nibble's number is at j for the low one of byte j, half a block behind for the
 * high one; the super-blocks of 256 (…_K) have scales of their sub-blocks beside one or two f16.
 */
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

/* { f16 d; i8 qs[32] }:  d q */
void
xm_decode_q8_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    for (int j = 0; j < 32; j++)
        out[j] = (float)(int8_t)block[2 + j] * d;
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

/* { f16 d, dmin; u8 scales[12]; u8 qh[32]; u8 qs[128] }:  as Q4_K, bit j of qh[l] on top */
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

/* { u8 e; u8 qs[16] }:  2^(e - 127) times a 4-bit float (1 sign, 2 exponent, 1 mantissa) */
void
xm_decode_mxfp4(const uint8_t *block, float *out)
{
    static const float number[16] = {0, .5f,  1,  1.5f,  2,  3,  4,  6,
                                     0, -.5f, -1, -1.5f, -2, -3, -4, -6};
    for (int j = 0; j < 16; j++) {
        out[j] = ldexpf(number[block[1 + j] & 15], block[0] - 127);
        out[j + 16] = ldexpf(number[block[1 + j] >> 4], block[0] - 127);
    }
}
