/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ2_XS: { f16 d; u16 qs[32]; u8 scales[8] }, d (scale + 1/2) / 4 times signed sizes of a grid in
 * sub-blocks of 16; 9 bits of an entry's number and 7 of signs are 8 columns.
 */
#ifdef FORMAT_iq2_xs
#define COLUMNS_iq2_xs 256
#define BYTES_iq2_xs   74
#define FACTORS_iq2_xs 16

__constant ushort iq2_xs_grid[] = {IQ2_XS_GRID};

static inline char16
iq2_xs_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint q = block_uint(block + 2 + 4 * i), scale = block[66 + i / 2] >> i % 2 * 4;
    *f = (float2)(block_half(block) * (0.5f + (scale & 15)) * 0.25f, 0.0f);
    return with_signs(iq2_sizes(iq2_xs_grid[q & 511], iq2_xs_grid[q >> 16 & 511]),
                      even_signs(q >> 9 & 127) | even_signs(q >> 25) << 8);
}
VALUES_OF_INTEGERS(iq2_xs)
#endif
