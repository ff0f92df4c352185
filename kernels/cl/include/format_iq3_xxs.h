/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ3_XXS: { f16 d; u8 qs[64]; u32 signs[8] }. A weight is d (scale + 1/2) / 2 times a signed
 * magnitude (4 12 20 28 36 44 52 62) of a grid; sub-blocks of 32 columns share a scale, the highest
 * 4 bits of `signs`. A grid index in qs is 4 columns, 7 bits of `signs` are the signs of 8.
 */
#ifdef FORMAT_iq3_xxs
#define COLUMNS_iq3_xxs 256
#define BYTES_iq3_xxs   98
#define SCALED_iq3_xxs 1
#define FOURS_iq3_xxs 1

__constant ushort iq3_xxs_grid[] = {IQ3_XXS_GRID};

static inline uint4
iq3_xxs_fours(__global const uchar *block, uint i)
{
    __global const uchar *q = block + 2 + 4 * i;
    return (uint4)(iq3_xxs_grid[q[0]], iq3_xxs_grid[q[1]], iq3_xxs_grid[q[2]],
                   iq3_xxs_grid[q[3]]);
}

static inline char16
iq3_xxs_sizes(__global const uchar *block, uint i)
{
    const uint4 n = as_uint4(iq3_numbers(iq3_xxs_fours(block, i)));
    const uint4 is_last = n & n >> 1 & n >> 2 & 0x01010101u;
    return as_char16(n << 3 | 0x04040404u | is_last << 1);
}

static inline uint
iq3_xxs_signs(__global const uchar *block, uint i)
{
    const uint signs = block_uint(block + 66 + i / 2 * 4);
    return even_signs16(signs, i % 2);
}
NUMBERS_OF_SIZES(iq3_xxs)

static inline uint
iq3_xxs_scale(__global const uchar *block, uint i)
{
    return 1 + (block_uint(block + 66 + i / 2 * 4) >> 28) * 2;
}

static inline float
iq3_xxs_factor(__global const uchar *block)
{
    return block_half(block) * 0.25f;
}

INTEGERS_OF_SCALED(iq3_xxs)
#endif
