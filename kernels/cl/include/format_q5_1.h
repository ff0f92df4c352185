/* SPDX-License-Identifier: Apache-2.0
 *
 * Q5_1: { f16 d, m; u8 qh[4]; u8 qs[16] }, d q + m; bits as of Q5_0.
 */
#ifdef FORMAT_q5_1
#define COLUMNS_q5_1  32
#define BYTES_q5_1    24
#define MINIMUMS_q5_1 1

static inline char16
q5_1_integers(__global const uchar *block, uint i, float2 *f)
{
    const uchar16 low = block_bytes16(block + 8) >> (uchar)(4 * i) & (uchar)15;
    *f = (float2)(block_half(block), -block_half(block + 2));
    return as_char16(low | (spread_bits(block_ushort(block + 4 + 2 * i)) & (uchar)16));
}
VALUES_OF_INTEGERS(q5_1)
#endif
