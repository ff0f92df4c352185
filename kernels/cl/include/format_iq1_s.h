/* SPDX-License-Identifier: Apache-2.0
 *
 * IQ1_S: { f16 d; u8 qs[32]; u16 qh[8] }, d (1 + 2 scale) (q + or - 1/8) with q of -1, 0, 1 from a
 * grid in sub-blocks of 32; an entry of 8 columns has 8 low bits in qs and 3 high ones in qh, above
 * which are the scale of 3 bits and the sign.
 */
#ifdef FORMAT_iq1_s
#define COLUMNS_iq1_s 256
#define BYTES_iq1_s   50

__constant ushort iq1_s_grid[] = {IQ1_S_GRID};

static inline char16
iq1_s_integers(__global const uchar *block, uint i, float2 *f)
{
    const uint high = block_ushort(block + 34 + i / 2 * 2), bits = high >> i % 2 * 6;
    const uint a = block[2 + 2 * i] | (bits & 7) << 8;
    const uint b = block[3 + 2 * i] | (bits >> 3 & 7) << 8;
    *f = (float2)(block_half(block) * (1 + 2 * (high >> 12 & 7)) * 0.125f, 0.0f);
    return iq1_eighths(iq1_s_grid[a], iq1_s_grid[b], high >> 15, high >> 15);
}
VALUES_OF_INTEGERS(iq1_s)
#endif
