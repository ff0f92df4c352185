/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ2_XS: { f16 d; u16 qs[32]; u8 scales[8] }. A weight is d (scale + 1/2) / 4 times a signed
 * magnitude of a grid; sub-blocks of 16 columns share a scale. Each qs is 8 columns: a grid index
 * of 9 bits and 7 signs (the eighth makes their parity even).
 */
#ifdef FORMAT_iq2_xs
#define COLUMNS_iq2_xs 256
#define BYTES_iq2_xs   74
#define FACTORS_iq2_xs 16
#define SCALED_iq2_xs 1
#define ENTRIES_iq2_xs 1

__constant ushort iq2_xs_grid[] = {IQ2_XS_GRID};

static inline uint2
iq2_xs_entries(__global const uchar *block, uint i)
{
    const uint q = block_uint(block + 2 + 4 * i);
    return (uint2)(iq2_xs_grid[q & 511], iq2_xs_grid[q >> 16 & 511]);
}

static inline uint
iq2_xs_signs(__global const uchar *block, uint i)
{
    const uint q = block_uint(block + 2 + 4 * i);
    return even_signs(q >> 9 & 127) | even_signs(q >> 25) << 8;
}
NUMBERS_OF_ENTRIES(iq2_xs)

static inline uint
iq2_xs_scale(__global const uchar *block, uint i)
{
    return 1 + (block[66 + i / 2] >> i % 2 * 4 & 15) * 2;
}

static inline float
iq2_xs_factor(__global const uchar *block)
{
    return block_half(block) * 0.125f;
}

INTEGERS_OF_SCALED(iq2_xs)
#endif
