/* SPDX-License-Identifier: Apache-2.0
 *
 * Q5_K: { f16 d, dmin; u8 scales[12]; u8 qh[32]; u8 qs[128] }, as Q4_K with a fifth bit: that of
 * column l of sub-block j is bit j of qh[l].
 */
#ifdef FORMAT_q5_k
#define COLUMNS_q5_k 256
#define BYTES_q5_k   176

static inline float16
q5_k_values(__global const uchar *block, uint i)
{
    const uint j = i / 2, l = i % 2 * 16;
    const float2 f = k_factors(block, j);
    const uchar16 low = block_bytes16(block + 48 + j / 2 * 32 + l);
    const uchar16 high = block_bytes16(block + 16 + l) >> (uchar)j & (uchar)1;
    const uchar16 q = (low >> (uchar)(j % 2 * 4) & (uchar)15) | high << (uchar)4;
    return convert_float16(q) * f.x - f.y;
}
#endif
