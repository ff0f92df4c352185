/* SPDX-License-Identifier: Apache-2.0
 *
 * Q4_K: { f16 d, dmin; u8 scales[12]; u8 qs[128] }, d scale q - dmin minimum in sub-blocks of 32;
 * the low nibbles of 32 bytes are a sub-block, the high ones the next.
 */
#ifdef FORMAT_q4_k
#define COLUMNS_q4_k  256
#define BYTES_q4_k    144
#define MINIMUMS_q4_k 1

static inline char16
q4_k_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = k_factors(block, i / 2);
    const uchar16 q = block_bytes16(block + 16 + i / 4 * 32 + i % 2 * 16);
    return as_char16(q >> (uchar)(i % 4 / 2 * 4) & (uchar)15);
}
VALUES_OF_INTEGERS(q4_k)
#endif
