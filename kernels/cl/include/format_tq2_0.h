/* SPDX-License-Identifier: Apache-2.0
 *
 * TQ2_0: { u8 qs[64]; f16 d }. A weight is d (q - 1); in each half of the block, column 32 j + l is
 * bits 2 j and 2 j + 1 of qs[l].
 */
#ifdef FORMAT_tq2_0
#define COLUMNS_tq2_0 256
#define BYTES_tq2_0   66
#define SCALED_tq2_0 1

static inline char16
tq2_0_numbers(__global const uchar *block, uint i)
{
    const uchar16 q = block_bytes16(block + i / 8 * 32 + i % 2 * 16);
    return less_one(as_uchar16(as_uint4(q) >> i % 8 / 2 * 2 & 0x03030303u));
}

static inline uint
tq2_0_scale(__global const uchar *block, uint i)
{
    return 1;
}

static inline float
tq2_0_factor(__global const uchar *block)
{
    return block_half(block + 64);
}

INTEGERS_OF_SCALED(tq2_0)
#endif
