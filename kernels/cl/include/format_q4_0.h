/* SPDX-License-Identifier: Apache-2.0
 *
 * Q4_0: { f16 d; u8 qs[16] }, d (q - 8); the low nibbles are columns 0 … 15.
 */
#ifdef FORMAT_q4_0
#define COLUMNS_q4_0 32
#define BYTES_q4_0   18

static inline float16
q4_0_values(__global const uchar *block, uint i)
{
    const uchar16 q = block_bytes16(block + 2) >> (uchar)(4 * i) & (uchar)15;
    return (convert_float16(q) - 8.0f) * block_half(block);
}
#endif
