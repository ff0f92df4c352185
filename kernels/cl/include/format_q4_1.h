/* SPDX-License-Identifier: Apache-2.0
 *
 * Q4_1: { f16 d, m; u8 qs[16] }, d q + m; the low nibbles are columns 0 … 15.
 */
#ifdef FORMAT_q4_1
#define COLUMNS_q4_1  32
#define BYTES_q4_1    20
#define MINIMUMS_q4_1 1

static inline char16
q4_1_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = (float2)(block_half(block), -block_half(block + 2));
    return as_char16(block_bytes16(block + 4) >> (uchar)(4 * i) & (uchar)15);
}
VALUES_OF_INTEGERS(q4_1)
#endif
