/* SPDX-License-Identifier: Apache-2.0
 *
 * Q1_0: { f16 d; u8 qs[16] }. A weight is d if its bit is set, else -d.
 */
#ifdef FORMAT_q1_0
#define COLUMNS_q1_0 128
#define BYTES_q1_0   18
#define SCALED_q1_0 1

static inline char16
q1_0_numbers(__global const uchar *block, uint i)
{
    const uint4 is_set = as_uint4(spread_bits(block_ushort(block + 2 + 2 * i)));
    return less_one(as_uchar16(is_set & 0x02020202u));
}

static inline uint
q1_0_scale(__global const uchar *block, uint i)
{
    return 1;
}

static inline float
q1_0_factor(__global const uchar *block)
{
    return block_half(block);
}

INTEGERS_OF_SCALED(q1_0)
#endif
