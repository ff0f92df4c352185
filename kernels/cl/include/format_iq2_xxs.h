/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ2_XXS: { f16 d; { u8 entry[4]; u32 signs }[8] }. A weight is d (scale + 1/2) / 4 times a signed
 * magnitude of a grid; sub-blocks of 32 columns share a scale, the highest 4 bits of `signs`. A
 * grid index (entry) and 7 bits of `signs` are 8 columns.
 */
#ifdef FORMAT_iq2_xxs
#define COLUMNS_iq2_xxs 256
#define BYTES_iq2_xxs   66
#define SCALED_iq2_xxs 1
#define ENTRIES_iq2_xxs 1

__constant ushort iq2_xxs_grid[] = {IQ2_XXS_GRID};

static inline uint2
iq2_xxs_entries(__global const uchar *block, uint i)
{
    __global const uchar *q = block + 2 + i / 2 * 8;
    const uint j = i % 2;
    return (uint2)(iq2_xxs_grid[q[2 * j]], iq2_xxs_grid[q[2 * j + 1]]);
}

static inline uint
iq2_xxs_signs(__global const uchar *block, uint i)
{
    const uint signs = block_uint(block + 6 + i / 2 * 8);
    return even_signs16(signs, i % 2);
}
NUMBERS_OF_ENTRIES(iq2_xxs)

static inline uint
iq2_xxs_scale(__global const uchar *block, uint i)
{
    return 1 + (block_uint(block + 6 + i / 2 * 8) >> 28) * 2;
}

static inline float
iq2_xxs_factor(__global const uchar *block)
{
    return block_half(block) * 0.125f;
}

INTEGERS_OF_SCALED(iq2_xxs)
#endif
