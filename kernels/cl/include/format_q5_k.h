/* SPDX-License-Identifier: Apache-2.0
 *
 * Q5_K: { f16 d, dmin; u8 scales[12]; u8 qh[32]; u8 qs[128] }, as Q4_K with a fifth bit: that of
 * column l of sub-block j is bit j of qh[l].
 */
#ifdef FORMAT_q5_k
#define COLUMNS_q5_k  256
#define BYTES_q5_k    176
#define MINIMUMS_q5_k 1

static inline char16
q5_k_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint j = i / 2, l = i % 2 * 16;
    *f = k_factors(block, j);
    const uchar16 low = block_bytes16(block + 48 + j / 2 * 32 + l);
    const uchar16 high = block_bytes16(block + 16 + l) >> (uchar)j & (uchar)1;
    return as_char16((low >> (uchar)(j % 2 * 4) & (uchar)15) | high << (uchar)4);
}
VALUES_OF_INTEGERS(q5_k)
#endif
