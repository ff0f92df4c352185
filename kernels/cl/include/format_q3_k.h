/* SPDX-License-Identifier: Apache-2.0
 *
 * Q3_K: { u8 hmask[32]; u8 qs[64]; u8 scales[12]; f16 d }, d (scale - 32) (q - 4) in sub-blocks of
 * 16. The low bits as of Q2_K; the third of columns 32 j + l is bit j of hmask[l]. A scale has 4
 * low bits and 2 high ones.
 */
#ifdef FORMAT_q3_k
#define COLUMNS_q3_k 256
#define BYTES_q3_k   110
#define FACTORS_q3_k 16

static inline char16
q3_k_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint l = i % 2 * 16;
    const int scale_low = block[96 + i % 8] >> i / 8 * 4 & 15;
    const int scale_high = block[104 + i % 4] >> i / 4 * 2 & 3;
    const uchar16 low = block_bytes16(block + 32 + i / 8 * 32 + l);
    const uchar16 high = block_bytes16(block + l) >> (uchar)(i / 2) & (uchar)1;
    *f = (float2)(block_half(block + 108) * ((scale_low | scale_high << 4) - 32), 0.0f);
    return as_char16((low >> (uchar)(i % 8 / 2 * 2) & (uchar)3) | high << (uchar)2) -
           (char)4;
}
VALUES_OF_INTEGERS(q3_k)
#endif
