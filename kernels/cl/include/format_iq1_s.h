/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ1_S: { f16 d; u8 qs[32]; u16 qh[8] }. A weight is d (1 + 2 scale) (q + 1/8) or … (q - 1/8),
 * with q of -1, 0, 1 from a grid; sub-blocks of 32 columns share a scale. A grid index (8 columns)
 * has 8 low bits in qs and 3 high ones in qh; above these, qh has the scale (3 bits) and the sign
 * of 1/8 (1: -).
 */
#ifdef FORMAT_iq1_s
#define COLUMNS_iq1_s 256
#define BYTES_iq1_s   50
#define SCALED_iq1_s 1

__constant ushort iq1_s_grid[] = {IQ1_S_GRID};

static inline char16
iq1_s_numbers(__global const uchar *block, uint i)
{
    const uint high = block_ushort(block + 34 + i / 2 * 2), bits = high >> i % 2 * 6;
    const uint a = block[2 + 2 * i] | (bits & 7) << 8;
    const uint b = block[3 + 2 * i] | (bits >> 3 & 7) << 8;
    return iq1_eighths(iq1_s_grid[a], iq1_s_grid[b], high >> 15, high >> 15);
}

static inline uint
iq1_s_scale(__global const uchar *block, uint i)
{
    return 1 + (block_ushort(block + 34 + i / 2 * 2) >> 12 & 7) * 2;
}

static inline float
iq1_s_factor(__global const uchar *block)
{
    return block_half(block) * 0.125f;
}

INTEGERS_OF_SCALED(iq1_s)
#endif
