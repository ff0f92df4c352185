/* SPDX-License-Identifier: Apache-2.0
 *
 * Q2_K: { u8 scales[16]; u8 qs[64]; f16 d, dmin }, d scale q - dmin minimum in sub-blocks of 16;
 * a scale's low nibble, its high one the minimum. In each half, columns 32 j + l are bits 2 j of
 * qs[l].
 */
#ifdef FORMAT_q2_k
#define COLUMNS_q2_k  256
#define BYTES_q2_k    84
#define FACTORS_q2_k  16
#define MINIMUMS_q2_k 1

static inline char16
q2_k_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint scale = block[i];
    const uchar16 q = block_bytes16(block + 16 + i / 8 * 32 + i % 2 * 16);
    *f = (float2)(block_half(block + 80) * (scale & 15),
                  block_half(block + 82) * (scale >> 4));
    return as_char16(q >> (uchar)(i % 8 / 2 * 2) & (uchar)3);
}
VALUES_OF_INTEGERS(q2_k)
#endif
