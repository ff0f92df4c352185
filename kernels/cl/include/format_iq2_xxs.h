/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ2_XXS: { f16 d; { u8 entry[4]; u32 signs }[8] }, d (scale + 1/2) / 4 times signed sizes of a
 * grid in sub-blocks of 32: an entry and 7 bits of `signs` are 8 columns, its highest 4 the scale.
 */
#ifdef FORMAT_iq2_xxs
#define COLUMNS_iq2_xxs 256
#define BYTES_iq2_xxs   66

__constant ushort iq2_xxs_grid[] = {IQ2_XXS_GRID};

static inline char16
iq2_xxs_integers(__global const uchar *block, uint i, float2 *f)
{
    __global const uchar *q = block + 2 + i / 2 * 8;
    const uint signs = block_uint(q + 4), j = i % 2;
    *f = (float2)(block_half(block) * (0.5f + (signs >> 28)) * 0.25f, 0.0f);
    return with_signs(iq2_sizes(iq2_xxs_grid[q[2 * j]], iq2_xxs_grid[q[2 * j + 1]]),
                      even_signs16(signs, j));
}
VALUES_OF_INTEGERS(iq2_xxs)
#endif
