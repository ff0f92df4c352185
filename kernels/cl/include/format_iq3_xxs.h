/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ3_XXS: { f16 d; u8 qs[64]; u32 signs[8] }, d (scale + 1/2) / 2 times signed sizes of a grid in
 * sub-blocks of 32: an entry is 4 columns, 7 bits of `signs` 8 of them, its highest 4 the scale.
 * Sizes are 4 12 20 28 36 44 52 62.
 */
#ifdef FORMAT_iq3_xxs
#define COLUMNS_iq3_xxs 256
#define BYTES_iq3_xxs   98

__constant ushort iq3_xxs_grid[] = {IQ3_XXS_GRID};

static inline char16
iq3_xxs_integers(__global const uchar *block, uint i, float2 *f)
{
    __global const uchar *q = block + 2 + 4 * i;
    const uint signs = block_uint(block + 66 + i / 2 * 4);
    const char16 n = iq3_numbers((uint4)(iq3_xxs_grid[q[0]], iq3_xxs_grid[q[1]],
                                         iq3_xxs_grid[q[2]], iq3_xxs_grid[q[3]]));
    const char16 is_last = n > (char)6;
    *f = (float2)(block_half(block) * (0.5f + (signs >> 28)) * 0.5f, 0.0f);
    return with_signs((char)4 + n * (char)8 - is_last - is_last,
                      even_signs16(signs, i % 2));
}
VALUES_OF_INTEGERS(iq3_xxs)
#endif
