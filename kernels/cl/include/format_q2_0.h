/* SPDX-License-Identifier: Apache-2.0
 *
 * Q2_0: { f16 d; u8 qs[16] }, d (q - 1), 2 bits each.
 */
#ifdef FORMAT_q2_0
#define COLUMNS_q2_0 64
#define BYTES_q2_0   18

static inline char16
q2_0_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = (float2)(block_half(block), 0.0f);
    return as_char16(spread_pairs(block_uint(block + 2 + 4 * i))) - (char)1;
}
VALUES_OF_INTEGERS(q2_0)
#endif
