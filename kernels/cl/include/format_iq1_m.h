/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ1_M: { u8 qs[32], qh[16]; u16 scales[4] }. A weight is d (1 + 2 scale) (q + 1/8) or … (q -
 * 1/8), with q of -1, 0, 1 from the grid of IQ1_S; sub-blocks of 16 columns share a scale. A grid
 * index (8 columns) has 8 low bits in qs and 3 high ones in a nibble of qh, whose highest bit is
 * the sign of 1/8 (1: -). Of each 16 bits of `scales` the highest 4 are a nibble of the half d, the
 * others four scales.
 */
#ifdef FORMAT_iq1_m
#define COLUMNS_iq1_m 256
#define BYTES_iq1_m   56
#define FACTORS_iq1_m 16
#define SCALED_iq1_m 1

__constant ushort iq1_m_grid[] = {IQ1_S_GRID};

static inline float
iq1_m_half(__global const uchar *scales)
{
    const uint a = block_uint(scales), b = block_uint(scales + 4);
    return half_bits((ushort)((a >> 12 & 15) | (a >> 24 & 0xf0) | (b >> 4 & 0xf00) |
                              (b >> 16 & 0xf000)));
}

static inline char16
iq1_m_numbers(__global const uchar *block, uint i)
{
    const uint high = block[32 + i];
    const uint a = block[2 * i] | (high & 7) << 8, b = block[2 * i + 1] | (high >> 4 & 7)
                                                                              << 8;
    return iq1_eighths(iq1_m_grid[a], iq1_m_grid[b], high >> 3 & 1, high >> 7);
}

static inline uint
iq1_m_scale(__global const uchar *block, uint i)
{
    return 1 + (block_ushort(block + 48 + i / 4 * 2) >> i % 4 * 3 & 7) * 2;
}

static inline float
iq1_m_factor(__global const uchar *block)
{
    return iq1_m_half(block + 48) * 0.125f;
}

INTEGERS_OF_SCALED(iq1_m)
#endif
