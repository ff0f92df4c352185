/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ2_S: { f16 d; u8 qs[32], signs[32], qh[8], scales[8] }. A weight is d (scale + 1/2) / 4 times a
 * signed magnitude of a grid; sub-blocks of 16 columns share a scale. A grid index (8 columns) has
 * 8 low bits in qs and 2 high ones in qh.
 */
#ifdef FORMAT_iq2_s
#define COLUMNS_iq2_s 256
#define BYTES_iq2_s   82
#define FACTORS_iq2_s 16
#define SCALED_iq2_s 1
#define ENTRIES_iq2_s 1

__constant ushort iq2_s_grid[] = {IQ2_S_GRID};

static inline uint2
iq2_s_entries(__global const uchar *block, uint i)
{
    const uint high = block[66 + i / 2] >> i % 2 * 4;
    const uint a = block[2 + 2 * i] | (high & 3) << 8;
    const uint b = block[3 + 2 * i] | (high >> 2 & 3) << 8;
    return (uint2)(iq2_s_grid[a], iq2_s_grid[b]);
}

static inline uint
iq2_s_signs(__global const uchar *block, uint i)
{
    return block_ushort(block + 34 + 2 * i);
}
NUMBERS_OF_ENTRIES(iq2_s)

static inline uint
iq2_s_scale(__global const uchar *block, uint i)
{
    return 1 + (block[74 + i / 2] >> i % 2 * 4 & 15) * 2;
}

static inline float
iq2_s_factor(__global const uchar *block)
{
    return block_half(block) * 0.125f;
}

INTEGERS_OF_SCALED(iq2_s)
#endif
