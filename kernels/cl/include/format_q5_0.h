/* SPDX-License-Identifier: Apache-2.0
 *
 * Q5_0: { f16 d; u8 qh[4]; u8 qs[16] }, d (q - 16); as Q4_0 with a fifth bit: that of column j is
 * bit j of qh.
 */
#ifdef FORMAT_q5_0
#define COLUMNS_q5_0 32
#define BYTES_q5_0   22

static inline char16
q5_0_integers(__global const uchar *block, uint i, float2 *f)
{
    const uchar16 low = block_bytes16(block + 6) >> (uchar)(4 * i) & (uchar)15;
    *f = (float2)(block_half(block), 0.0f);
    return as_char16(low | (spread_bits(block_ushort(block + 2 + 2 * i)) & (uchar)16)) -
           (char)16;
}
VALUES_OF_INTEGERS(q5_0)
#endif
