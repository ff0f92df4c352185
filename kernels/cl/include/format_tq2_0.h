/* SPDX-License-Identifier: Apache-2.0
 *
 * TQ2_0: { u8 qs[64]; f16 d }, d (q - 1); in each half, columns 32 j + l are bits 2 j of qs[l].
 */
#ifdef FORMAT_tq2_0
#define COLUMNS_tq2_0 256
#define BYTES_tq2_0   66

static inline char16
tq2_0_integers(__global const uchar *block, uint i, float2 *f)
{
    const uchar16 q = block_bytes16(block + i / 8 * 32 + i % 2 * 16);
    *f = (float2)(block_half(block + 64), 0.0f);
    return as_char16(q >> (uchar)(i % 8 / 2 * 2) & (uchar)3) - (char)1;
}
VALUES_OF_INTEGERS(tq2_0)
#endif
