/* SPDX-License-Identifier: Apache-2.0
 *
 * Q8_0: { f16 d; i8 qs[32] }, d q.
 */
#ifdef FORMAT_q8_0
#define COLUMNS_q8_0 32
#define BYTES_q8_0   34

static inline float16
q8_0_values(__global const uchar *block, uint i)
{
    const char16 q = as_char16(block_bytes16(block + 2 + 16 * i));
    return convert_float16(q) * block_half(block);
}
#endif
