/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ3_S: { f16 d; u8 qs[64], qh[8], signs[32], scales[4] }. A weight is d (1 + 2 scale) times a
 * signed magnitude (1 3 … 15) of a grid; sub-blocks of 32 columns share a scale. A grid index (4
 * columns) has 8 low bits in qs and a high one in qh.
 */
#ifdef FORMAT_iq3_s
#define COLUMNS_iq3_s 256
#define BYTES_iq3_s   110
#define SCALED_iq3_s 1
#define FOURS_iq3_s 1

__constant ushort iq3_s_grid[] = {IQ3_S_GRID};

static inline uint4
iq3_s_fours(__global const uchar *block, uint i)
{
    __global const uchar *q = block + 2 + 4 * i;
    const uint high = block[66 + i / 2] >> i % 2 * 4;
    return (uint4)(iq3_s_grid[q[0] | (high & 1) << 8], iq3_s_grid[q[1] | (high >> 1 & 1) << 8],
                   iq3_s_grid[q[2] | (high >> 2 & 1) << 8],
                   iq3_s_grid[q[3] | (high >> 3 & 1) << 8]);
}

static inline char16
iq3_s_sizes(__global const uchar *block, uint i)
{
    const char16 n = iq3_numbers(iq3_s_fours(block, i));
    return as_char16(as_uint4(n) << 1 | 0x01010101u);
}

static inline uint
iq3_s_signs(__global const uchar *block, uint i)
{
    return block_ushort(block + 74 + 2 * i);
}
NUMBERS_OF_SIZES(iq3_s)

static inline uint
iq3_s_scale(__global const uchar *block, uint i)
{
    return 1 + (block[106 + i / 4] >> i / 2 % 2 * 4 & 15) * 2;
}

static inline float
iq3_s_factor(__global const uchar *block)
{
    return block_half(block);
}

INTEGERS_OF_SCALED(iq3_s)
#endif
