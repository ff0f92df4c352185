/* SPDX-License-Identifier: Apache-2.0
 *
 * Q2_0: { f16 d; u8 qs[16] }. A weight is d (q - 1) with q of 2 bits.
 */
#ifdef FORMAT_q2_0
#define COLUMNS_q2_0 64
#define BYTES_q2_0   18
#define SCALED_q2_0 1

static inline char16
q2_0_numbers(__global const uchar *block, uint i)
{
    return less_one(spread_pairs(block_uint(block + 2 + 4 * i)));
}

static inline uint
q2_0_scale(__global const uchar *block, uint i)
{
    return 1;
}

static inline float
q2_0_factor(__global const uchar *block)
{
    return block_half(block);
}

INTEGERS_OF_SCALED(q2_0)
#endif
