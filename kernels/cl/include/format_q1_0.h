/* SPDX-License-Identifier: Apache-2.0
 *
 * Q1_0: { f16 d; u8 qs[16] }, d where a bit is set, else -d.
 */
#ifdef FORMAT_q1_0
#define COLUMNS_q1_0 128
#define BYTES_q1_0   18

static inline char16
q1_0_integers(__global const uchar *block, uint i, float2 *f)
{
    const char16 is_set = as_char16(spread_bits(block_ushort(block + 2 + 2 * i)));
    *f = (float2)(block_half(block), 0.0f);
    return (char)-1 - is_set - is_set;
}
VALUES_OF_INTEGERS(q1_0)
#endif
