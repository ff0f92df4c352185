/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ3_S: { f16 d; u8 qs[64], qh[8], signs[32], scales[4] }, d (1 + 2 scale) times signed sizes 1 3
 * … 15 of a grid in sub-blocks of 32; an entry of 4 columns has 8 low bits in qs, a high one in qh.
 */
#ifdef FORMAT_iq3_s
#define COLUMNS_iq3_s 256
#define BYTES_iq3_s   110

__constant ushort iq3_s_grid[] = {IQ3_S_GRID};

static inline char16
iq3_s_integers(__global const uchar *block, uint i, float2 *f)
{
    __global const uchar *q = block + 2 + 4 * i;
    const uint high = block[66 + i / 2] >> i % 2 * 4,
               scale = block[106 + i / 4] >> i / 2 % 2 * 4;
    const char16 n = iq3_numbers((uint4)(iq3_s_grid[q[0] | (high & 1) << 8],
                                         iq3_s_grid[q[1] | (high >> 1 & 1) << 8],
                                         iq3_s_grid[q[2] | (high >> 2 & 1) << 8],
                                         iq3_s_grid[q[3] | (high >> 3 & 1) << 8]));
    *f = (float2)(block_half(block) * (1 + 2 * (scale & 15)), 0.0f);
    return with_signs((char)1 + n + n, block_ushort(block + 74 + 2 * i));
}
VALUES_OF_INTEGERS(iq3_s)
#endif
